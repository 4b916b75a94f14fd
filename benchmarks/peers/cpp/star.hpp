// SUM(quantity * price) and COUNT(*) by category, region and segment over sales and three dimensions with keys.
#pragma once

#include <array>
#include <cstdio>

#include "flat.hpp"

// A sale looks its three dimensions up. A dimension has the slots of its sales, whether its row is there or not.
class Star {
public:
    void change(int table, int64_t sign, const int64_t* row) {
        if (table != 0)
            dimension(table - 1, sign, row);
        else if (sign > 0)
            insert(row);
        else
            remove(row);
    }

    size_t size() {
        size_t count = 0;
        groups_.each([&](int64_t, Group&) { count++; });
        return count;
    }

    void print() {
        groups_.each([](int64_t key, Group& group) {
            std::printf("%lld %lld %lld %lld %lld\n", (long long)(key >> 42), (long long)(key >> 21 & PART),
                        (long long)(key & PART), (long long)group.worth, (long long)group.count);
        });
    }

private:
    static constexpr int64_t PART = (1 << 21) - 1;
    struct Sale {
        std::array<int64_t, 3> keys;
        std::array<uint32_t, 3> places;  // in the lists of its dimensions
        int64_t quantity;
    };
    struct Dimension {
        int64_t there = 0, group = 0, factor = 0;
        std::vector<uint32_t> sales;
    };
    struct Group {
        int64_t worth = 0, count = 0;
    };

    void insert(const int64_t* row) {
        uint32_t slot;
        if (free_.empty()) {
            slot = uint32_t(sales_.size());
            sales_.emplace_back();
        } else {
            slot = free_.back();
            free_.pop_back();
        }
        slots_.at(row[0]) = slot;
        Sale& sale = sales_[slot];
        sale.quantity = row[4];
        Dimension* found[3];
        for (int i = 0; i < 3; i++) {
            sale.keys[i] = row[i + 1];
            found[i] = &dimensions_[i].at(row[i + 1]);
            sale.places[i] = uint32_t(found[i]->sales.size());
            found[i]->sales.push_back(slot);
        }
        add(1, sale, found);
    }

    void remove(const int64_t* row) {
        uint32_t slot = *slots_.find(row[0]);
        slots_.erase(row[0]);
        Sale& sale = sales_[slot];
        Dimension* found[3];
        for (int i = 0; i < 3; i++) {
            found[i] = dimensions_[i].find(sale.keys[i]);
            auto& list = found[i]->sales;
            uint32_t last = list.back();
            list[sale.places[i]] = last;
            sales_[last].places[i] = sale.places[i];
            list.pop_back();
        }
        add(-1, sale, found);
        free_.push_back(slot);
    }

    void dimension(int which, int64_t sign, const int64_t* row) {
        Dimension& changed = dimensions_[which].at(row[0]);
        changed.group = row[1];
        changed.factor = which == 0 ? row[2] : 0;
        // The sales meet it while it is there: an insert before them, a delete after them.
        changed.there = 1;
        for (uint32_t slot : changed.sales) {
            const Sale& sale = sales_[slot];
            Dimension* found[3];
            for (int i = 0; i < 3; i++) found[i] = i == which ? &changed : dimensions_[i].find(sale.keys[i]);
            add(sign, sale, found);
        }
        changed.there = sign > 0;
    }

    void add(int64_t sign, const Sale& sale, Dimension* const* found) {
        if (!(found[0]->there & found[1]->there & found[2]->there)) return;
        int64_t key = found[0]->group << 42 | found[1]->group << 21 | found[2]->group;
        Group& group = groups_.at(key);
        group.worth += sign * sale.quantity * found[0]->factor;
        group.count += sign;
        if (!group.count) groups_.erase(key);
    }

    Map<Dimension> dimensions_[3];
    Map<uint32_t> slots_;
    std::vector<Sale> sales_;
    std::vector<uint32_t> free_;
    Map<Group> groups_;
};
