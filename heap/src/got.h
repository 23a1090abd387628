/* got.h: taking the place of functions in a program that runs already.
 *
 *     a call of malloc ──▶ the caller's slot for malloc (its global offset table) ──▶ ours ──▶ the real one
 *
 * A preloaded library stands before the real functions when the loader looks them up. In a program that runs, it has looked
 * them up: so the slots are written, of every object that is loaded, and of those to come before they are first used.
 */
#ifndef HT_GOT_H
#define HT_GOT_H

struct ht_hook {
    const char *name;
    void *ours;
    void *real;
};

/* Writes the slots for these functions. `hooks` stays. */
void ht_got_take(const struct ht_hook *hooks, unsigned count);

/* Writes those of objects that came since. Cheap where none did. */
void ht_got_again(void);

/* In a forked child: nobody else is at it. */
void ht_got_forked(void);
#endif
