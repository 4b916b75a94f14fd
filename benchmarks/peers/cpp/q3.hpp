// TPC-H Q3: revenue of late items by order, for orders before a day of customers in one segment.
#pragma once

#include <cstdio>

#include "flat.hpp"

// An order has its own row and the sum of its late items in one place; a customer has the keys of its orders.
class Q3 {
public:
    void change(int table, int64_t sign, const int64_t* row) {
        if (table == 0)
            customer(sign, row);
        else if (table == 1)
            order(sign, row);
        else
            item(sign, row);
    }

    size_t size() {
        size_t count = 0;
        view_.each([&](int64_t, Row&) { count++; });
        return count;
    }

    void print() {
        view_.each([](int64_t key, Row& row) {
            std::printf("%lld %lld %lld %lld\n", (long long)key, (long long)row.revenue, (long long)row.date,
                        (long long)row.priority);
        });
    }

private:
    static constexpr int64_t BUILDING = 1, DAY = 9204;  // 1995-03-15
    struct Order {
        int64_t count = 0, revenue = 0;
        int64_t customer = 0, date = 0, priority = 0;
        bool there = false, chosen = false;
    };
    struct Customer {
        bool chosen = false;
        std::vector<int64_t> orders;
    };
    struct Row {
        int64_t revenue = 0, count = 0, date = 0, priority = 0;
    };

    void item(int64_t sign, const int64_t* row) {
        if (row[4] <= DAY) return;
        int64_t revenue = sign * row[2] * (100 - row[3]);
        Order& order = orders_.at(row[0]);
        order.count += sign;
        order.revenue += revenue;
        if (order.chosen)
            add(row[0], order, revenue, sign);
        else if (!order.count && !order.there)
            orders_.erase(row[0]);
    }

    void order(int64_t sign, const int64_t* row) {
        if (row[2] >= DAY) return;
        Customer& customer = customers_.at(row[1]);
        Order& order = orders_.at(row[0]);
        if (customer.chosen) {
            order.date = row[2];
            order.priority = row[3];
            add(row[0], order, sign * order.revenue, sign * order.count);
        }
        if (sign > 0) {
            order.customer = row[1];
            order.date = row[2];
            order.priority = row[3];
            order.there = true;
            order.chosen = customer.chosen;
            customer.orders.push_back(row[0]);
            return;
        }
        size_t at = 0;
        while (customer.orders[at] != row[0]) at++;
        customer.orders[at] = customer.orders.back();
        customer.orders.pop_back();
        order.there = order.chosen = false;
        if (!order.count) orders_.erase(row[0]);
    }

    void customer(int64_t sign, const int64_t* row) {
        if (row[1] != BUILDING) return;
        Customer& customer = customers_.at(row[0]);
        customer.chosen = sign > 0;
        for (int64_t key : customer.orders) {
            Order& order = *orders_.find(key);
            order.chosen = customer.chosen;
            add(key, order, sign * order.revenue, sign * order.count);
        }
    }

    void add(int64_t key, const Order& order, int64_t revenue, int64_t count) {
        if (!count) return;
        Row& row = view_.at(key);
        row.revenue += revenue;
        row.count += count;
        row.date = order.date;
        row.priority = order.priority;
        if (!row.count) view_.erase(key);
    }

    Map<Customer> customers_;
    Map<Order> orders_;
    Map<Row> view_;
};
