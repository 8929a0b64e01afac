/* Lets Debian's user-mode-linux run where the processor has more state than it knows (AMX).
 *
 * It hands PTRACE_SETREGSET a buffer of the size it was built with; the host wants all of the state (EFAULT
 * otherwise). Preloaded, this hands over the whole: the state as it is, with what was given laid over its front.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/uio.h>

enum { GET_REGSET = 0x4204, SET_REGSET = 0x4205, XSTATE = 0x202, LARGEST = 1 << 15 };

long ptrace(int request, ...)
{
    static long (*host_ptrace)(int, int, void *, void *);
    static char whole[LARGEST] __attribute__((aligned(64)));
    va_list given;
    va_start(given, request);
    int pid = va_arg(given, int);
    void *address = va_arg(given, void *), *data = va_arg(given, void *);
    va_end(given);
    if (!host_ptrace)
        *(void **)&host_ptrace = dlsym(RTLD_NEXT, "ptrace");
    if (request == SET_REGSET && (long)address == XSTATE) {
        struct iovec *front = data, state = {whole, sizeof whole};
        if (host_ptrace(GET_REGSET, pid, address, &state) == 0 && state.iov_len > front->iov_len) {
            memcpy(whole, front->iov_base, front->iov_len);
            return host_ptrace(SET_REGSET, pid, address, &state);
        }
    }
    return host_ptrace(request, pid, address, data);
}
