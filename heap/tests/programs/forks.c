/* forks.c: one way of making a child, named by argv[1]; child and parent each allocate a size of
 * their own before and after. 5, 6 MiB: the parent, before and after; 7: the child (8: grandchild). */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)
extern char **environ;
static void *before;
static char stack[1 << 16] __attribute__((aligned(16)));

static void *use(size_t mib) {
    char *p = malloc(mib * MIB);
    if (!p)
        _exit(9);
    memset(p, 1, 4096);
    return p;
}

static int child(void *unused) {
    (void)unused;
    use(7);
    free(before); /* its parent's: must not appear as freed in the parent's channel */
    _exit(0);
}

static void finish(pid_t pid) {
    int status;
    if (pid < 0 || waitpid(pid, &status, __WALL) != pid || status != 0)
        _exit(3);
    use(6);
    _exit(0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    before = use(5);
    if (!strcmp(how, "fork")) {
        pid_t pid = fork();
        if (!pid)
            child(NULL);
        finish(pid);
    } else if (!strcmp(how, "raw")) { /* no fork handlers run */
        pid_t pid = (pid_t)syscall(SYS_fork);
        if (!pid)
            child(NULL);
        finish(pid);
    } else if (!strcmp(how, "clone")) {
        finish(clone(child, stack + sizeof stack, SIGCHLD, NULL));
    } else if (!strcmp(how, "vfork")) {
        pid_t pid = vfork();
        if (!pid) {
            free(use(7));
            _exit(0);
        }
        finish(pid);
    } else if (!strcmp(how, "shared")) { /* a process that shares our memory, as vfork does, and runs on */
        finish(clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL));
    } else if (!strcmp(how, "grandchild")) {
        pid_t pid = fork();
        if (!pid) {
            use(7);
            pid = fork();
            if (!pid) {
                use(8);
                _exit(0);
            }
            int status;
            waitpid(pid, &status, 0);
            _exit(status);
        }
        finish(pid);
    } else if (!strcmp(how, "exec")) {
        char *again[] = {argv[0], "after", NULL};
        execve(argv[0], again, environ);
        _exit(4);
    } else if (!strcmp(how, "after")) {
        use(7);
        _exit(0);
    }
    return 5;
}
