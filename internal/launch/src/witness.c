// hightide-witness: a process in the group of the observed command that blocks every signal and does nothing else. Asked by
// a byte on its standard input, the number of a signal, it answers y where one has come since it was last asked, else n. So
// hightide knows whether a signal was sent to the whole group, of which the command has its own then, or to hightide alone.
// It ends with its standard input. It uses no library: it must run wherever hightide does.

#include <linux/prctl.h>
#include <linux/signal.h>

#include "kernel.h"

START(run)

__attribute__((used)) static void run(void)
{
	const long mask_bytes = 8;
	unsigned long all = ~0UL;
	call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, mask_bytes);
	call(__NR_prctl, PR_SET_NAME, (long)"hightide-witness", 0, 0);
	unsigned char asked;
	while (call(__NR_read, 0, (long)&asked, 1, 0) == 1) {
		unsigned long one = 1UL << ((asked - 1) & 63);
		long at_once[2] = {0, 0}; // struct timespec
		char answer = call(__NR_rt_sigtimedwait, (long)&one, 0, (long)at_once, mask_bytes) > 0 ? 'y' : 'n';
		call(__NR_write, 1, (long)&answer, 1, 0);
	}
	call(__NR_exit_group, 0, 0, 0, 0);
}
