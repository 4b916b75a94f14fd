// Views by hand: program VIEW STREAM TIMES LIMIT. benchmarks/peers/programs.py describes the files and the output.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "graph.hpp"
#include "q3.hpp"
#include "star.hpp"

static int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static int64_t spent() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

static std::vector<int64_t> words_of(const char* path) {
    FILE* file = std::fopen(path, "rb");
    if (!file) {
        std::perror(path);
        std::exit(1);
    }
    std::fseek(file, 0, SEEK_END);
    std::vector<int64_t> words(size_t(std::ftell(file)) / sizeof(int64_t));
    std::rewind(file);
    if (std::fread(words.data(), sizeof(int64_t), words.size(), file) != words.size()) std::exit(1);
    std::fclose(file);
    return words;
}

template <class View>
static void run(const std::vector<int64_t>& words, const char* times, double limit) {
    View view;
    const int64_t *at = words.data() + 2, steps = words[0], before = words[1];
    // Written once, so that its pages are there before the clock starts.
    std::vector<int64_t> taken(size_t(steps), 1);
    taken.clear();
    int64_t cpu = 0, cpu_since = spent(), since = now(), end = 0;
    for (int64_t i = 0; i < steps; i++) {
        if (i == before) {
            end = now() + int64_t(limit * 1e9);
            cpu_since = spent();
            since = now();
        }
        const int64_t table = at[0], sign = at[1], rows = at[2], columns = at[3], compared = at[4];
        at += 5;
        for (int64_t row = 0; row < rows; row++, at += columns) view.change(int(table), sign, at);
        int64_t then = now();
        taken.push_back(then - since);
        since = then;
        if (compared) {
            if (i >= before) cpu += spent() - cpu_since;
            std::printf("at %lld %zu\n", (long long)i, view.size());
            view.print();
            cpu_since = spent();
            since = now();
        } else if (i >= before && then > end) {
            cpu += spent() - cpu_since;
            cpu_since = spent();
            break;
        }
    }
    std::printf("cpu %lld\n", (long long)cpu);
    FILE* file = std::fopen(times, "wb");
    std::fwrite(taken.data(), sizeof(int64_t), taken.size(), file);
    std::fclose(file);
}

int main(int count, char** given) {
    if (count != 5) {
        std::fprintf(stderr, "VIEW STREAM TIMES LIMIT are needed\n");
        return 2;
    }
    std::vector<int64_t> words = words_of(given[2]);
    double limit = std::atof(given[4]);
    const char *view = given[1], *times = given[3];
    if (!std::strcmp(view, "2-hop"))
        run<TwoHop>(words, times, limit);
    else if (!std::strcmp(view, "3-hop"))
        run<ThreeHop>(words, times, limit);
    else if (!std::strcmp(view, "triangle"))
        run<Triangle>(words, times, limit);
    else if (!std::strcmp(view, "star"))
        run<Star>(words, times, limit);
    else if (!std::strcmp(view, "q3"))
        run<Q3>(words, times, limit);
    else {
        std::fprintf(stderr, "there is no view %s\n", view);
        return 2;
    }
}
