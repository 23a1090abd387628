/* nccl_model.c: how much device memory a communicator takes: a model, not a measurement.
 *
 * A connection to a neighbour has, per channel, one buffer of 10 MiB where it receives (protocols LL 0.5,
 * LL128 4.7 and Simple 4 MiB, rounded up to the allocation's 2 MiB) and two of 2 MiB. So an all-to-all on
 * 8 H100 takes 7 peers x 32 channels x 14 MiB = 3.29 GB, and 3.28 GB were seen (NVIDIA/nccl issue 1685,
 * which also names the two sizes). The two directions are connected apart: who only sends has no buffer of 10 MiB,
 * who only receives has no page of the sender. Whose the other 2 MiB are is not known: each direction counts them.
 * Channels of collectives are as NCCL's own log prints them: 24 with NVLink switches, 16 on the cut-down ones,
 * 4 over PCIe, where without peer access buffers are host memory.
 * NVLS takes a buffer per channel and head more (compute capability 9.0 with NVSwitch).
 * Uncertain by half: topology, environment and version change channels. Keys of the SPEC override it:
 * nccl_base, nccl_collectives, nccl_peer (bytes), nvlink (0 or 1). */
#include <stdlib.h>
#include <string.h>

#include "nccl.h"
#include "runtime.h"

#define CONNECTION (14 * 1048576ull)
#define PAGE_BYTES (2 * 1048576ull)
#define HOST_CONNECTION (2 * 1048576ull) /* over PCIe through host memory: flags and staging only */

static uint64_t setting(const char *name, uint64_t absent) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : absent;
}

static uint64_t within(uint64_t channels) {
    uint64_t most = setting("NCCL_MAX_NCHANNELS", setting("NCCL_MAX_CTAS", 64)), least = setting("NCCL_MIN_NCHANNELS", 1);
    if (channels < least)
        channels = least;
    return channels > most ? most : channels;
}

/* The Simple protocol's part follows NCCL_BUFFSIZE. */
static uint64_t connection(int device) {
    uint64_t simple = setting("NCCL_BUFFSIZE", 4u << 20);
    uint64_t other = 524288 + 4915200;
    uint64_t receive = (simple + other + (2u << 20) - 1) & ~((2ull << 20) - 1);
    return ht_nvlink(ht_device(device)) ? receive + CONNECTION - (10u << 20) : HOST_CONNECTION;
}

uint64_t ht_nccl_base(int device, int ranks) {
    (void)ranks;
    return ht_figure(device, "nccl_base", 6u << 20);
}

uint64_t ht_nccl_collectives(int device, int ranks) {
    if (ranks < 2)
        return 0;
    const struct ht_gpu *gpu = ht_device(device);
    int nvlink = ht_nvlink(ht_device(device)), hopper = gpu && gpu->cc_major >= 9;
    uint64_t channels = within(nvlink ? 24 : 4), bytes = channels * connection(device);
    if (nvlink && ranks > 8) /* between machines: a network buffer per channel and direction */
        bytes += channels * 2 * (5u << 20);
    if (nvlink && hopper && ranks > 2 && setting("NCCL_NVLS_ENABLE", 1))
        bytes += 16ull * (uint64_t)(ranks < 8 ? ranks : 8) * (1u << 20);
    return ht_figure(device, "nccl_collectives", bytes);
}

uint64_t ht_nccl_peer(int device, int ranks, int ways) {
    const struct ht_gpu *gpu = ht_device(device);
    if (ranks < 2 || !ways)
        return 0;
    int nvlink = ht_nvlink(ht_device(device));
    uint64_t channels = within(nvlink ? (gpu && gpu->cc_major >= 9 ? 32 : 16) : 2), bytes = connection(device);
    if (nvlink && ways == HT_SENDS)
        bytes = 2 * PAGE_BYTES;
    else if (nvlink && ways == HT_RECEIVES)
        bytes -= PAGE_BYTES;
    return ht_figure(device, "nccl_peer", channels * bytes);
}
