/* module.c: modules and libraries of kernels, as the driver loads them. A kernel is a handle that nobody looks into. The
 * global variables of a module are device memory, of the sizes that its code (an ELF file, as ptxas makes it) says: XLA
 * puts large constants there. Of code in another form (PTX, compressed) none is known, and who asks is refused.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

#define MODULE_MAGIC 0x6d6f64756c656d67ull
#define ALIGNED 256ull

struct variable { uint64_t at, bytes; uint32_t name; };
struct module { HT_HANDLE; uint64_t memory; size_t count, room; char *names; size_t names_bytes; struct variable *variables; };
static struct module unknown = {.magic = MODULE_MAGIC}; /* of a kernel that is asked for its module */
static char function_cell;

/* ---- what stands in the code */

static const Elf64_Shdr *section(const char *image, const Elf64_Ehdr *head, unsigned i) {
    return i < head->e_shnum ? (const Elf64_Shdr *)(image + head->e_shoff + (size_t)i * head->e_shentsize) : NULL;
}
static int is_global(const char *image, const Elf64_Ehdr *head, const Elf64_Sym *symbol) {
    const Elf64_Shdr *home = section(image, head, symbol->st_shndx), *names = section(image, head, head->e_shstrndx);
    return home && names && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           strncmp(image + names->sh_offset + home->sh_name, ".nv.global", 10) == 0;
}

/* Fills in the module's variables, their places counted from 0; how much memory they take. */
static uint64_t read_variables(struct module *module, const char *image) {
    const Elf64_Ehdr *head = (const void *)image;
    const Elf64_Shdr *table = NULL, *names = NULL;
    uint64_t bytes = 0;
    if (!image || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64)
        return 0;
    for (unsigned i = 0; i < head->e_shnum; i++)
        if (section(image, head, i)->sh_type == SHT_SYMTAB)
            table = section(image, head, i);
    names = table ? section(image, head, table->sh_link) : NULL;
    const Elf64_Sym *symbols = names ? (const void *)(image + table->sh_offset) : NULL;
    size_t n = names ? table->sh_size / sizeof *symbols : 0;
    for (size_t i = 0; i < n; i++)
        module->room += (size_t)is_global(image, head, &symbols[i]);
    module->variables = module->room ? ht_new(module->room * sizeof *module->variables) : NULL;
    module->names = module->variables ? ht_new(names->sh_size) : NULL;
    if (!module->names)
        return 0;
    module->names_bytes = names->sh_size;
    memcpy(module->names, image + names->sh_offset, names->sh_size);
    for (size_t i = 0; i < n; i++)
        if (is_global(image, head, &symbols[i])) {
            module->variables[module->count++] = (struct variable){bytes, symbols[i].st_size, symbols[i].st_name};
            bytes += ht_round(symbols[i].st_size, ALIGNED);
        }
    return bytes;
}

static int unload(void *handle) {
    struct module *module = handle;
    if (!ht_is(module, MODULE_MAGIC) || module == &unknown)
        return CUDA_OK;
    if (module->memory)
        ht_device_free(module->memory);
    ht_drop(module->variables, module->room * sizeof *module->variables);
    ht_drop(module->names, module->names_bytes);
    ht_drop(module, sizeof *module);
    return CUDA_OK;
}

static int load(void **out, const void *image) {
    struct module *module = ht_new(sizeof *module);
    if (!module)
        return CUDA_OUT_OF_MEMORY;
    module->magic = MODULE_MAGIC;
    uint64_t bytes = read_variables(module, image);
    module->memory = bytes ? ht_device_alloc(ht_device_current(), HT_KIND_ALLOCATION, bytes) : 0;
    if (bytes && !module->memory) {
        unload(module);
        return CUDA_OUT_OF_MEMORY;
    }
    *out = module;
    return CUDA_OK;
}

static int variable(uint64_t *at, size_t *bytes, void *handle, const char *name) {
    const struct module *module = handle;
    if (!ht_is(module, MODULE_MAGIC) || !name)
        return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < module->count; i++)
        if (strcmp(module->names + module->variables[i].name, name) == 0) {
            if (at)
                *at = module->memory + module->variables[i].at;
            if (bytes)
                *bytes = module->variables[i].bytes;
            return CUDA_OK;
        }
    return CUDA_NOT_FOUND;
}

/* ---- the driver's entry points */

HT_EXPORT int cuModuleLoad(void **module, const char *file) { (void)file; return load(module, NULL); }
HT_EXPORT int cuModuleLoadData(void **module, const void *image) { return load(module, image); }
HT_EXPORT int cuModuleLoadDataEx(void **module, const void *image) { return load(module, image); }
HT_EXPORT int cuModuleLoadFatBinary(void **module, const void *image) { return load(module, image); }
HT_EXPORT int cuModuleUnload(void *module) { return unload(module); }
HT_EXPORT int cuModuleGetLoadingMode(int *mode) { *mode = 2 /* lazy */; return CUDA_OK; }
HT_EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) { (void)module, (void)name; *function = &function_cell; return CUDA_OK; }
HT_EXPORT int cuModuleGetFunctionCount(unsigned *n, void *module) { (void)module; *n = 1; return CUDA_OK; }
HT_EXPORT int cuModuleGetGlobal_v2(uint64_t *at, size_t *bytes, void *module, const char *name) {
    int error = variable(at, bytes, module, name);
    if (error)
        HT_REFUSED();
    return error;
}
HT_EXPORT int cuLibraryLoadData(void **library, const void *code) { return load(library, code); }
HT_EXPORT int cuLibraryLoadFromFile(void **library, const char *file) { (void)file; return load(library, NULL); }
HT_EXPORT int cuLibraryUnload(void *library) { return unload(library); }
HT_EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name) { (void)library, (void)name; *kernel = &function_cell; return CUDA_OK; }
HT_EXPORT int cuLibraryGetModule(void **module, void *library) { *module = library; return CUDA_OK; }
HT_EXPORT int cuLibraryGetGlobal(uint64_t *at, size_t *bytes, void *library, const char *name) { return cuModuleGetGlobal_v2(at, bytes, library, name); }
HT_EXPORT int cuKernelGetFunction(void **function, void *kernel) { *function = kernel; return CUDA_OK; }
HT_EXPORT int cuFuncGetModule(void **module, void *function) { (void)function; *module = &unknown; return CUDA_OK; }
HT_EXPORT int cuFuncGetName(const char **name, void *function) { (void)function; *name = "kernel"; return CUDA_OK; }
HT_EXPORT int cuFuncLoad(void *function) { (void)function; return CUDA_OK; }
HT_EXPORT int cuFuncIsLoaded(int *state, void *function) { (void)function; *state = 1; return CUDA_OK; }
