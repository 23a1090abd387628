/* cupti.c: the library that profilers subscribe to. No kernel runs, so there is no activity to record: what asks for records
 * is served, and gets none. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "core.h"

enum { CUPTI_OK = 0, CUPTI_INVALID_PARAMETER = 1, CUPTI_NO_RECORD = 12 };

/* Nanoseconds of the wall clock, as the library normalizes those of a device. */
HT_EXPORT int cuptiGetTimestamp(uint64_t *at) {
    struct timespec now;
    if (!at)
        return CUPTI_INVALID_PARAMETER;
    clock_gettime(CLOCK_REALTIME, &now);
    *at = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return CUPTI_OK;
}

HT_EXPORT int cuptiGetResultString(int error, const char **words) {
    if (!words)
        return CUPTI_INVALID_PARAMETER;
    *words = error == CUPTI_OK ? "CUPTI_SUCCESS" : "an error of CUPTI";
    return CUPTI_OK;
}

HT_EXPORT int cuptiGetErrorMessage(int error, const char **words) { return cuptiGetResultString(error, words); }

/* What the real one says. From CUDA 13 on it asks the driver for tables that are no public interface, and calls itself
 * without end where it gets none. Its header has had the toolkit's number since: 130500 of 13.5, 130501 of its first update.
 * Which update this is we do not know, and who asks wants none older than it was built with: a late one is told. */
HT_EXPORT int cuptiGetVersion(uint32_t *version) {
    int (*real)(uint32_t *) = (int (*)(uint32_t *))(uintptr_t)ht_real_symbol("libcupti.so.", "cuptiGetVersion");
    if (!version || !real)
        return CUPTI_INVALID_PARAMETER;
    if (ht_cuda_version() < 13000)
        return real(version);
    *version = 10u * (unsigned)ht_cuda_version() + 9;
    return CUPTI_OK;
}

HT_EXPORT int cuptiSubscribe(void **subscriber, void *callback, void *data) {
    static int one;
    (void)callback, (void)data;
    if (!subscriber)
        return CUPTI_INVALID_PARAMETER;
    *subscriber = &one;
    return CUPTI_OK;
}
HT_EXPORT int cuptiUnsubscribe(void *subscriber) { return subscriber ? CUPTI_OK : CUPTI_INVALID_PARAMETER; }
HT_EXPORT int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t id) {
    (void)on, (void)domain, (void)id;
    return subscriber ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}
HT_EXPORT int cuptiEnableDomain(uint32_t on, void *subscriber, int domain) {
    return cuptiEnableCallback(on, subscriber, domain, 0);
}
HT_EXPORT int cuptiFinalize(void) { return CUPTI_OK; }
HT_EXPORT int cuptiSetThreadIdType(int kind) { return (void)kind, CUPTI_OK; }

HT_EXPORT int cuptiActivityEnable(int kind) { return (void)kind, CUPTI_OK; }
HT_EXPORT int cuptiActivityDisable(int kind) { return (void)kind, CUPTI_OK; }
HT_EXPORT int cuptiActivitySetAttribute(int which, size_t *bytes, void *value) {
    (void)which;
    return bytes && value ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}
HT_EXPORT int cuptiActivityRegisterCallbacks(void *asked, void *done) {
    return asked && done ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}
HT_EXPORT int cuptiActivityFlushAll(uint32_t flags) { return (void)flags, CUPTI_OK; }
HT_EXPORT int cuptiActivityFlushPeriod(uint32_t ms) { return (void)ms, CUPTI_OK; }
HT_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, void **record) {
    (void)buffer, (void)bytes, (void)record;
    return CUPTI_NO_RECORD;
}
HT_EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
    (void)context, (void)stream;
    if (!dropped)
        return CUPTI_INVALID_PARAMETER;
    *dropped = 0;
    return CUPTI_OK;
}
