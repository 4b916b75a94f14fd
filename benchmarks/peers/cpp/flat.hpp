// Open-addressed hash tables: linear probing, powers of two, at most half full, deletion by shifting back.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

inline uint64_t mixed(int64_t key) { return uint64_t(key) * 0x9E3779B97F4A7C15ull; }

// A map from integers other than EMPTY to values.
template <class Value>
class Map {
public:
    static constexpr int64_t EMPTY = INT64_MIN;
    struct Slot {
        int64_t key = EMPTY;
        Value value{};
    };

    Map() : slots_(16), shift_(60) {}

    Value* find(int64_t key) {
        for (size_t at = home(key);; at = next(at)) {
            if (slots_[at].key == key) return &slots_[at].value;
            if (slots_[at].key == EMPTY) return nullptr;
        }
    }

    // The value of a key, added if it is not there. The reference holds until another key is added or erased.
    Value& at(int64_t key) {
        for (size_t at = home(key);; at = next(at)) {
            if (slots_[at].key == key) return slots_[at].value;
            if (slots_[at].key == EMPTY) {
                if (2 * (count_ + 1) > slots_.size()) {
                    grow();
                    return this->at(key);
                }
                count_++;
                slots_[at].key = key;
                return slots_[at].value;
            }
        }
    }

    void erase(int64_t key) {
        size_t hole = home(key);
        while (slots_[hole].key != key) {
            if (slots_[hole].key == EMPTY) return;
            hole = next(hole);
        }
        for (size_t at = next(hole); slots_[at].key != EMPTY; at = next(at)) {
            size_t mask = slots_.size() - 1;
            if (((at - home(slots_[at].key)) & mask) >= ((at - hole) & mask)) {
                slots_[hole] = std::move(slots_[at]);
                hole = at;
            }
        }
        slots_[hole] = Slot{};
        count_--;
    }

    template <class Action>
    void each(Action action) {
        for (auto& slot : slots_)
            if (slot.key != EMPTY) action(slot.key, slot.value);
    }

private:
    size_t home(int64_t key) const { return mixed(key) >> shift_; }
    size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }

    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        shift_--;
        for (auto& slot : old)
            if (slot.key != EMPTY) {
                size_t at = home(slot.key);
                while (slots_[at].key != EMPTY) at = next(at);
                slots_[at] = std::move(slot);
            }
    }

    std::vector<Slot> slots_;
    int shift_;
    size_t count_ = 0;
};

// A set of numbers from 0 to 2^32 - 2, small enough to be scanned.
class Set {
public:
    static constexpr uint32_t EMPTY = UINT32_MAX;

    uint32_t size() const { return count_; }

    bool has(uint32_t key) const {
        if (!count_) return false;
        for (uint32_t at = home(key);; at = (at + 1) & mask())
            if (slots_[at] == key)
                return true;
            else if (slots_[at] == EMPTY)
                return false;
    }

    void add(uint32_t key) {
        if (2 * (count_ + 1) > slots_.size()) grow();
        put(key);
        count_++;
    }

    void remove(uint32_t key) {
        uint32_t hole = home(key);
        while (slots_[hole] != key) hole = (hole + 1) & mask();
        for (uint32_t at = (hole + 1) & mask(); slots_[at] != EMPTY; at = (at + 1) & mask())
            if (((at - home(slots_[at])) & mask()) >= ((at - hole) & mask())) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        slots_[hole] = EMPTY;
        count_--;
    }

    template <class Action>
    void each(Action action) const {
        for (uint32_t key : slots_)
            if (key != EMPTY) action(key);
    }

private:
    uint32_t mask() const { return uint32_t(slots_.size()) - 1; }
    uint32_t home(uint32_t key) const { return (key * 0x9E3779B1u) >> shift_; }

    void put(uint32_t key) {
        uint32_t at = home(key);
        while (slots_[at] != EMPTY) at = (at + 1) & mask();
        slots_[at] = key;
    }

    void grow() {
        std::vector<uint32_t> old(slots_.empty() ? 8 : 2 * slots_.size(), EMPTY);
        old.swap(slots_);
        shift_ = 32 - __builtin_ctz(uint32_t(slots_.size()));
        for (uint32_t key : old)
            if (key != EMPTY) put(key);
    }

    std::vector<uint32_t> slots_;
    int shift_ = 29;
    uint32_t count_ = 0;
};
