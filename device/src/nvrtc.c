/* nvrtc.c: compiling needs no device: the real libraries do it, names of kernels and all. */
#include "forward.h"

#define NVRTC_INTERNAL_ERROR 11
__attribute__((used)) static int absent(void) { return NVRTC_INTERNAL_ERROR; }
__attribute__((used)) static const char *absent_text(void) { return "NVRTC is not loaded"; }
#define HT_FORWARD_ABSENT absent
#define HT_FORWARD_LIBRARY "libnvrtc.so."
HT_FORWARD(nvrtcAddNameExpression)
HT_FORWARD(nvrtcCompileProgram)
HT_FORWARD(nvrtcCreateProgram)
HT_FORWARD(nvrtcDestroyProgram)
HT_FORWARD(nvrtcGetCUBIN)
HT_FORWARD(nvrtcGetCUBINSize)
HT_FORWARD(nvrtcGetLTOIR)
HT_FORWARD(nvrtcGetLTOIRSize)
HT_FORWARD(nvrtcGetLoweredName)
HT_FORWARD(nvrtcGetNumSupportedArchs)
HT_FORWARD(nvrtcGetOptiXIR)
HT_FORWARD(nvrtcGetOptiXIRSize)
HT_FORWARD(nvrtcGetPTX)
HT_FORWARD(nvrtcGetPTXSize)
HT_FORWARD(nvrtcGetProgramLog)
HT_FORWARD(nvrtcGetProgramLogSize)
HT_FORWARD(nvrtcGetSupportedArchs)
HT_FORWARD(nvrtcGetNVVM)
HT_FORWARD(nvrtcGetNVVMSize)
HT_FORWARD(nvrtcGetPCHCreateStatus)
HT_FORWARD(nvrtcGetPCHHeapSize)
HT_FORWARD(nvrtcGetPCHHeapSizeRequired)
HT_FORWARD(nvrtcSetPCHHeapSize)
HT_FORWARD(nvrtcSetFlowCallback)
HT_FORWARD(nvrtcGetTileIR)
HT_FORWARD(nvrtcGetTileIRSize)
HT_FORWARD(nvrtcVersion)
#undef HT_FORWARD_ABSENT
#define HT_FORWARD_ABSENT absent_text
HT_FORWARD(nvrtcGetErrorString)
