// Counts of patterns over one table of distinct edges.
#pragma once

#include <cstdio>

#include "flat.hpp"

// Numbers 0, 1, ... of the nodes, in the order in which they come.
class Nodes {
public:
    uint32_t number(int64_t node) {
        uint32_t& found = numbers_.at(node);
        if (!found) found = ++count_;
        return found - 1;
    }

private:
    Map<uint32_t> numbers_;
    uint32_t count_ = 0;
};

// The sum over nodes of edges in times edges out.
class TwoHop {
public:
    void change(int, int64_t sign, const int64_t* row) {
        Degrees& from = nodes_.at(row[0]);
        from.out += sign;
        count_ += sign * from.in;
        Degrees& to = nodes_.at(row[1]);
        to.in += sign;
        count_ += sign * to.out;
    }

    size_t size() const { return 1; }
    void print() { std::printf("%lld\n", (long long)count_); }

private:
    struct Degrees {
        int64_t in = 0, out = 0;
    };
    Map<Degrees> nodes_;
    int64_t count_ = 0;
};

// Neighbours as a list: it is read from end to end, and removal looks for its element.
class List {
public:
    const std::vector<uint32_t>& all() const { return all_; }
    void add(uint32_t key) { all_.push_back(key); }

    void remove(uint32_t key) {
        size_t at = 0, size = all_.size();
        const uint32_t* keys = all_.data();
        for (; at + 16 <= size; at += 16) {
            bool here = false;
            for (int i = 0; i < 16; i++) here |= keys[at + i] == key;
            if (here) break;
        }
        while (keys[at] != key) at++;
        all_[at] = all_.back();
        all_.pop_back();
    }

private:
    std::vector<uint32_t> all_;
};

// The sum over edges (b, c) of edges into b times edges out of c. A node has the number of paths of two edges into it:
// an edge is the first, then the middle, then the last of a path.
class ThreeHop {
public:
    void change(int, int64_t sign, const int64_t* row) {
        uint32_t a = numbers_.number(row[0]), b = numbers_.number(row[1]);
        uint32_t most = a > b ? a : b;
        if (most >= nodes_.size()) {
            nodes_.resize(2 * most + 2);
            in_.resize(2 * most + 2);
            after_.resize(2 * most + 2);
        }
        int64_t found = 0;
        for (uint32_t c : after_[b].all()) {
            nodes_[c].paths += sign;
            found += nodes_[c].out;
        }
        in_[b] += sign;
        nodes_[b].paths += sign * in_[a];
        found += in_[a] * nodes_[b].out;
        if (sign > 0)
            after_[a].add(b);
        else
            after_[a].remove(b);
        nodes_[a].out += sign;
        count_ += sign * (found + nodes_[a].paths);
    }

    size_t size() const { return 1; }
    void print() { std::printf("%lld\n", (long long)count_); }

private:
    struct Node {
        int64_t paths = 0, out = 0;
    };
    Nodes numbers_;
    std::vector<Node> nodes_;
    std::vector<int64_t> in_;
    std::vector<List> after_;
    int64_t count_ = 0;
};

// A new edge (a, b) closes a triangle with each node after b and before a; a triangle is three occurrences.
class Triangle {
public:
    void change(int, int64_t sign, const int64_t* row) {
        uint32_t a = nodes_.number(row[0]), b = nodes_.number(row[1]);
        uint32_t most = a > b ? a : b;
        if (most >= before_.size()) {
            before_.resize(2 * most + 2);
            after_.resize(2 * most + 2);
        }
        if (sign > 0) {
            after_[a].add(b);
            before_[b].add(a);
        } else {
            after_[a].remove(b);
            before_[b].remove(a);
        }
        const Set *fewer = &after_[b], *more = &before_[a];
        if (fewer->size() > more->size()) std::swap(fewer, more);
        int64_t found = 0;
        fewer->each([&](uint32_t c) { found += more->has(c); });
        count_ += sign * 3 * found;
    }

    size_t size() const { return 1; }
    void print() { std::printf("%lld\n", (long long)count_); }

private:
    Nodes nodes_;
    std::vector<Set> before_, after_;
    int64_t count_ = 0;
};
