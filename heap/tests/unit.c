/* unit.c: the library's parts one by one, without preloading. Built plain and with the address and
 * undefined-behaviour sanitizers; prints how much it checked. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../src/channel.h"
#include "../src/code.h"
#include "../src/late.h"
#include "../src/maps.h"
#include "../src/numbers.h"
#include "../src/rate.h"
#include "../../common/sys.h"
#include "../src/table.h"
#include "../../common/check.h"

static char folder[] = "/tmp/hightide-unit-XXXXXX";

static void numbers_agree_with_libm(void) {
    for (int i = 1; i < 200000; i++) {
        double x = i / 200000.0;
        CHECK(fabs(ht_log(x) - log(x)) <= 1e-12 * fmax(1, fabs(log(x))), "x %g: %g, libm %g", x, ht_log(x), log(x));
        CHECK(fabs(ht_one_minus_exp(x * 45) + expm1(-x * 45)) <= 1e-12, "x %g", x * 45);
    }
    CHECK(fabs(ht_log(1e-16) - log(1e-16)) < 1e-10, "smallest draw");
    for (double x = 1e-9; x < 1e-3; x *= 1.7) /* relative, where the weight divides by it */
        CHECK(fabs(ht_one_minus_exp(x) / -expm1(-x) - 1) < 1e-12, "x %g", x);
}

static void draws_are_exponential(void) {
    uint64_t random = 12345, mean = 512 << 10;
    const int n = 400000;
    double sum = 0, squares = 0;
    int below_median = 0;
    for (int i = 0; i < n; i++) {
        double draw = (double)ht_draw(&random, mean);
        sum += draw;
        squares += draw * draw;
        below_median += draw < (double)mean * HT_LN2;
    }
    double average = sum / n, deviation = sqrt(squares / n - average * average);
    CHECK(fabs(average / (double)mean - 1) < 0.01, "mean %g", average);
    CHECK(fabs(deviation / (double)mean - 1) < 0.02, "standard deviation %g", deviation);
    CHECK(abs(below_median - n / 2) < 1500, "%d of %d below the median", below_median, n);
}

static void weights_undo_the_sampling(void) {
    for (uint64_t size = 16; size < (4u << 20); size = size * 3 / 2) {
        double p = -expm1(-(double)size / (512 << 10));
        CHECK(fabs((double)ht_weight(size, 512 << 10) - (double)size / p) <= 0.51, "size %lu", size);
    }
}

static void rate_follows_the_budget(void) {
    struct ht_rate rate;
    const uint64_t base = 512 << 10;
    uint64_t now = 1000000000;
    ht_rate_start(&rate, base, now);
    for (int i = 0; i < 200; i++, now += 1000) /* 200 samples of 10 us at once */
        ht_rate_spend(&rate, now, now + 10000, 0);
    CHECK(rate.mean > base && rate.mean <= base << 2000000 / HT_BUDGET_NS, "mean %lu under load", rate.mean);
    for (int i = 0; i < 10; i++, now += 100000000)
        ht_rate_spend(&rate, now, now + 3000, 0);
    CHECK(rate.mean == base, "mean %lu a second after the load", rate.mean);
    ht_rate_start(&rate, base, now);
    for (int i = 0; i < 30; i++, now += 1000)
        ht_rate_spend(&rate, now, now + 10000, 0);
    CHECK(rate.mean == base * 2, "mean %lu after 0.3 ms at once", rate.mean);
    for (int i = 0; i < 90; i++, now += 10000000) /* 50 us in 100 ms: twice that is within the budget, but not far */
        ht_rate_spend(&rate, now, now + 5000, 0);
    CHECK(rate.mean == base * 2, "mean %lu after 0.9 s of calm", rate.mean);
    for (int i = 0; i < 40; i++, now += 10000000)
        ht_rate_spend(&rate, now, now + 5000, 0);
    CHECK(rate.mean == base, "mean %lu after 1.3 s of calm", rate.mean);
    uint64_t before = rate.spent;
    ht_rate_spend(&rate, now, now + 1000000000, 0); /* stopped for a second inside a sample */
    CHECK(rate.spent - before <= HT_SAMPLE_CAP_NS || rate.spent == 0, "an interruption is not our cost");
    ht_rate_start(&rate, base, now);
    for (int i = 0; i < 2000; i++, now += 1000000) /* 0.2 % of the time, 1.6 % of an eighth of it */
        ht_rate_spend(&rate, now, now + 2000, HT_WHOLE_TIME / 8 * 7);
    CHECK(rate.mean >= base * 4, "mean %lu of a program that has a processor for an eighth of the time", rate.mean);
    for (int i = 0; i < 4000; i++, now += 1000)
        ht_rate_spend(&rate, now, now + 20000, HT_WHOLE_TIME);
    CHECK(rate.mean == base * HT_MOST_TIMES, "mean %lu of a program that waits nearly always", rate.mean);
    ht_rate_spend(&rate, now, now + 2000, UINT64_MAX); /* the header is shared memory */
    ht_rate_want(&rate, 1 << 20);
    CHECK(rate.mean == 1 << 20, "what the engine asked for");
    ht_rate_want(&rate, 1);
    CHECK(rate.mean == 4096, "clamped");
}

static void table_finds_what_it_holds(void) {
    CHECK(ht_table_reset() == 0, "memory");
    enum { N = 60000 };
    for (uintptr_t i = 1; i <= N; i++)
        CHECK(ht_table_add(i * 48), "%lu of %d", i, N);
    CHECK(ht_table_live() == N, "%u live", ht_table_live());
    for (uintptr_t i = 1; i <= N; i++)
        CHECK(ht_maybe_tracked((void *)(i * 48)), "the filter misses %lu", i);
    for (uintptr_t i = 1; i <= N; i++)
        CHECK(!ht_table_take(i * 48 + 16) || (i * 48 + 16) % 48 == 0, "a stranger");
    for (uintptr_t i = 1; i <= N; i++)
        CHECK(ht_table_take(i * 48) && !ht_table_take(i * 48), "%lu taken once", i);
    CHECK(ht_table_live() == 0, "%u live", ht_table_live());
    for (int round = 0; round < 200; round++) /* used slots are used again */
        for (uintptr_t i = 1; i <= 1000; i++) {
            uintptr_t p = (i + (uintptr_t)round * 1000) * 32;
            CHECK(ht_table_add(p) && ht_table_take(p), "round %d", round);
        }
    uintptr_t full = 1;
    while (ht_table_add(full * 16))
        full++;
    CHECK(full > (1u << HT_TABLE_BITS) / 2, "full at %lu", full);
}

static void maps_are_cut(void) {
    struct ht_cut cut;
    ht_maps_reset();
    CHECK(ht_maps_add((struct ht_map){0x10000, 0x8000, 0x8000}) && ht_maps_any(), "added");
    CHECK(!ht_maps_cut(0x18000, 0x1000, &cut) && !ht_maps_cut(0xf000, 0x1000, &cut), "neighbours");
    CHECK(ht_maps_cut(0x17000, 0x5000, &cut), "tail");
    CHECK(cut.freed == 0x1000 && cut.left.bytes == 0x7000 && cut.right.bytes == 0, "tail of %zx", cut.freed);
    CHECK(ht_maps_cut(0x12000, 0x1000, &cut), "hole");
    CHECK(cut.left.bytes == 0x2000 && cut.right.start == 0x13000 && cut.right.bytes == 0x4000, "hole");
    CHECK(cut.right.weight == 0x4000, "weight %lu", cut.right.weight);
    CHECK(ht_maps_add(cut.right), "the piece behind the hole");
    CHECK(ht_maps_cut(0x13000, 0x1000, &cut) && cut.left.bytes == 0 && cut.right.start == 0x14000, "head");
    CHECK(ht_maps_cut(0, 1ul << 40, &cut) && cut.map.start == 0x10000, "all");
    CHECK(!ht_maps_cut(0, 1ul << 40, &cut) && !ht_maps_any(), "nothing left");
    for (int i = 0; i < HT_MAPS; i++)
        CHECK(ht_maps_add((struct ht_map){(uintptr_t)i << 20, 4096, 4096}), "%d", i);
    CHECK(!ht_maps_add((struct ht_map){1ul << 40, 4096, 4096}), "full");
    ht_maps_reset();
}

static int told;
static int tell_some(const struct ht_free *item) {
    if (told == 3)
        return 0;
    CHECK(item->address == (uint64_t)told + 1, "order");
    told++;
    return 1;
}

static void late_frees_keep_their_order(void) {
    ht_late_reset();
    for (uint64_t i = 1; i <= 5; i++)
        CHECK(ht_late_keep((struct ht_free){i, 0}), "room");
    CHECK(!ht_late_flush(tell_some) && told == 3 && ht_late_any(), "two are left");
    told = 3 - 3;
    ht_late_reset();
    CHECK(ht_late_flush(tell_some) && !ht_late_any(), "empty");
    for (int i = 0; i < HT_LATE; i++)
        CHECK(ht_late_keep((struct ht_free){1, 0}), "%d", i);
    CHECK(!ht_late_keep((struct ht_free){1, 0}), "full");
    ht_late_reset();
}

/* Reads all records, zeroes them and moves the tail, as the engine does. */
static unsigned drain(struct ht_channel *channel, unsigned *pads) {
    uint64_t tail = channel->header->tail, size = channel->header->ring_bytes;
    unsigned n = 0;
    while (tail < channel->header->head) {
        struct ht_record *record = (struct ht_record *)(channel->ring + tail % size);
        uint32_t bytes = record->bytes;
        CHECK(bytes >= 8 && !(bytes & HT_BUSY) && bytes % 8 == 0 && tail % size + bytes <= size, "%u bytes", bytes);
        if (record->kind == HT_PAD)
            ++*pads;
        else
            n++;
        memset(record, 0, bytes);
        tail += bytes;
    }
    channel->header->tail = tail;
    return n;
}

static void channel_wraps_and_drops(void) {
    struct ht_channel channel = {0};
    CHECK(ht_channel_open(&channel, folder, 1 << 16, NULL) == 0, "open");
    CHECK(channel.header->magic == HT_CHANNEL_MAGIC && channel.header->pid == (uint32_t)getpid(), "header");
    CHECK(channel.header->process_start > 0, "start");
    unsigned written = 0, read = 0, pads = 0;
    for (int round = 0; round < 3000; round++) {
        uint32_t bytes = 16 + 8 * ((unsigned)round * 7919u % 200);
        struct ht_record *record = ht_channel_reserve(&channel, bytes, 0);
        if (!record) {
            read += drain(&channel, &pads);
            continue;
        }
        record->kind = HT_HEAP_FREE;
        memset(record + 1, 0xff, bytes - sizeof *record);
        ht_channel_commit(record, bytes);
        written++;
    }
    read += drain(&channel, &pads);
    CHECK(written == read && pads > 10, "%u written, %u read, %u pads", written, read, pads);
    CHECK(channel.header->dropped_records == 3000 - written, "drops are counted");
    while (ht_channel_reserve(&channel, 1024, 1 << 14))
        ;
    CHECK(!ht_channel_room(&channel, 1024, 1 << 14) && ht_channel_room(&channel, 1024, 0), "the spare part");
    channel.header->tail = channel.header->head;
    struct ht_channel again = {0};
    CHECK(ht_channel_open(&again, folder, 1 << 16, channel.header) == 0 && again.header == channel.header, "mapped over");
    CHECK(again.header->head == 0, "and new");
    munmap(again.header, again.mapped);
}

static void channel_gives_up_quietly(void) {
    struct ht_channel channel = {0};
    CHECK(ht_channel_open(&channel, "/nonexistent/folder", 1 << 16, NULL) == -ENOENT, "no folder");
    CHECK(ht_channel_open(&channel, folder, 1u << 30, NULL) != 0 || channel.header, "one or the other");
    if (channel.header)
        munmap(channel.header, channel.mapped);
    char deep[600];
    memset(deep, 'x', sizeof deep - 1);
    deep[0] = '/';
    deep[sizeof deep - 1] = 0;
    CHECK(ht_channel_open(&channel, deep, 1 << 16, NULL) == -ENAMETOOLONG, "long name");
}

static void channel_ignores_umask(void) {
    struct ht_channel channel = {0};
    mode_t old = umask(0777);
    CHECK(ht_channel_open(&channel, folder, 1 << 16, NULL) == 0, "open");
    umask(old);
    char path[256];
    struct stat st;
    int found = 0;
    for (int n = 2; n < 10; n++) {
        snprintf(path, sizeof path, "%s/heap-%d-%lu-%d.ring", folder, getpid(), channel.header->process_start, n);
        if (stat(path, &st) == 0)
            found += (st.st_mode & 0777) == 0600;
    }
    CHECK(found >= 2, "files with a suffix and mode 0600: %d", found);
    munmap(channel.header, channel.mapped);
}

static void peek_refuses_what_is_not_there(void) {
    long value = 42, copy = 0;
    CHECK(sys_peek(&copy, &value, sizeof copy) && copy == 42, "own memory");
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    CHECK(!sys_peek(&copy, page + 4092, sizeof copy), "half of it");
    CHECK(!sys_peek(&copy, (void *)8, sizeof copy), "the zero page");
    munmap(page, 4096);
}

/* A code object and its strings, laid out as 3.11 does; only what the library reads is there. */
struct fake_bytes { char head[16]; uint64_t size; char pad[8]; char data[16]; };
struct fake_text { char head[16]; uint64_t length; char hash[8]; uint32_t state; uint32_t pad; char rest[64]; };
struct fake_code { char head[72]; int32_t first_line; char pad[36]; void *filename, *name_unused, *name, *lines; };

static const struct ht_layout fake = {
    .python = 0x30b, .code_filename = offsetof(struct fake_code, filename), .code_name = offsetof(struct fake_code, name),
    .code_lines = offsetof(struct fake_code, lines), .code_firstline = offsetof(struct fake_code, first_line),
    .bytes_size = 16, .bytes_data = 32, .text_length = 16, .text_state = 32, .text_ascii = 40, .text_compact = 56,
    .text_legacy = 72,
};

static struct fake_text text(int kind, int compact, int ascii, uint64_t length) {
    struct fake_text t = {.length = length, .state = (uint32_t)(kind << 2 | compact << 5 | ascii << 6)};
    return t;
}

static struct ht_code *last_code(struct ht_channel *channel, const char **filename, const char **name) {
    struct ht_record *record = (struct ht_record *)channel->ring, *last = NULL;
    for (; record->bytes; record = (struct ht_record *)((char *)record + record->bytes))
        last = record;
    struct ht_code *code = (struct ht_code *)(last + 1);
    *filename = (const char *)(code + 1);
    *name = *filename + code->filename_bytes;
    return code;
}

static void code_objects_are_told_once(void) {
    struct ht_channel channel = {0};
    CHECK(ht_channel_open(&channel, folder, 1 << 16, NULL) == 0, "open");
    ht_code_reset();
    struct fake_bytes lines = {.size = 10, .data = "0123456789"};
    struct fake_text filename = text(1, 1, 1, 7), name = text(2, 1, 0, 5);
    memcpy((char *)&filename + 40, "file.py", 7);
    uint16_t wide[5] = {'G', 0xf6, 0x20ac, 0xd800, '!'}; /* a lone surrogate among them */
    memcpy((char *)&name + 56, wide, sizeof wide);
    struct fake_code code = {.first_line = 12, .filename = &filename, .name = &name, .lines = &lines};
    uint32_t number = ht_code_number(&channel, &fake, (char *)&code);
    uint64_t head = channel.header->head;
    CHECK(number == 1 && ht_code_number(&channel, &fake, (char *)&code) == 1, "the same number");
    CHECK(channel.header->head == head, "and told once");
    const char *told_file, *told_name;
    struct ht_code *record = last_code(&channel, &told_file, &told_name);
    CHECK(record->filename_bytes == 7 && !memcmp(told_file, "file.py", 7), "file");
    CHECK(record->name_bytes == 10 && !memcmp(told_name, "G\xc3\xb6\xe2\x82\xac\xef\xbf\xbd!", 10), "UTF-8 of UCS-2");
    CHECK(record->table_bytes == 10 && !memcmp(told_name + 10, "0123456789", 10), "lines");
    code.first_line = 13; /* another object in the same place */
    CHECK(ht_code_number(&channel, &fake, (char *)&code) == 2, "address reuse");
    lines.data[9] = 'x';
    CHECK(ht_code_number(&channel, &fake, (char *)&code) == 3, "another line table");
    static uint32_t legacy[3] = {'a', 0x1f600, 'b'}; /* not compact: the characters lie elsewhere */
    struct fake_text old = text(4, 0, 0, 3);
    void *at = legacy;
    memcpy((char *)&old + 72, &at, sizeof at);
    code.name = &old;
    CHECK(ht_code_number(&channel, &fake, (char *)&code) == 4, "new");
    record = last_code(&channel, &told_file, &told_name);
    CHECK(record->name_bytes == 6 && !memcmp(told_name, "a\xf0\x9f\x98\x80" "b", 6), "legacy UCS-4");
    static struct fake_code many[200];
    uint32_t last = 4;
    for (int i = 0; i < 200; i++) {
        many[i] = code;
        many[i].first_line = i;
        uint32_t got = ht_code_number(&channel, &fake, (char *)&many[i]);
        CHECK(got == last + 1, "%u after %u", got, last);
        last = got;
    }
    while (ht_channel_reserve(&channel, 64, 0))
        ;
    code.first_line = 99;
    CHECK(ht_code_number(&channel, &fake, (char *)&code) == 0, "no room, no number");
    munmap(channel.header, channel.mapped);
}

int main(void) {
    CHECK(mkdtemp(folder), "a folder");
    numbers_agree_with_libm();
    draws_are_exponential();
    weights_undo_the_sampling();
    rate_follows_the_budget();
    table_finds_what_it_holds();
    maps_are_cut();
    late_frees_keep_their_order();
    channel_wraps_and_drops();
    channel_gives_up_quietly();
    channel_ignores_umask();
    peek_refuses_what_is_not_there();
    code_objects_are_told_once();
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0, "clean");
    printf("unit: %d checks passed\n", checks);
    return 0;
}
