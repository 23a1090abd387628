/* versions.c: which version a library is: the real one's own answer, which needs no device. XLA and TensorFlow ask before
 * they use a library. */
#include "forward.h"

__attribute__((used)) static int absent(void) { return 1; } /* not initialised, as each of them says it */
HT_FORWARD_TO("libcufft.so.", cufftGetVersion, absent)
HT_FORWARD_TO("libcufft.so.", cufftGetProperty, absent)
HT_FORWARD_TO("libcusolver.so.", cusolverGetVersion, absent)
HT_FORWARD_TO("libcusolver.so.", cusolverGetProperty, absent)
HT_FORWARD_TO("libcurand.so.", curandGetVersion, absent)
HT_FORWARD_TO("libcurand.so.", curandGetProperty, absent)
HT_FORWARD_TO("libcusparse.so.", cusparseGetProperty, absent)
HT_FORWARD_TO("libcusparseLt.so.", cusparseLtGetProperty, absent)

/* The handle is one of ours, so that the real one is asked what needs none. */
int cusparseGetProperty(int which, int *value);
HT_EXPORT int cusparseGetVersion(void *handle, int *version) {
    int part[3] = {0}, error = handle && version ? 0 : 1;
    for (int which = 0; !error && which < 3; which++)
        error = cusparseGetProperty(which, &part[which]);
    if (!error)
        *version = part[0] * 1000 + part[1] * 100 + part[2];
    return error;
}
