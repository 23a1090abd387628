/* code.h: code objects are told once (HT_HEAP_CODE) and named by a number from then on. */
#ifndef HT_CODE_H
#define HT_CODE_H
#include <stdint.h>

#include "channel.h"
#include "../../common/layout.h"

void ht_code_reset(void);

/* The number of a code object, 0 if it could not be told (no room in the ring). */
uint32_t ht_code_number(struct ht_channel *channel, const struct ht_layout *layout, const char *code);
#endif
