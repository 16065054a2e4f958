// What the generated bindings need of a C library; `runtime.c` has it.
#ifndef STDLIB_H
#define STDLIB_H
#include <stddef.h>
void *malloc(size_t size);
void *realloc(void *block, size_t size);
void free(void *block);
_Noreturn void abort(void);
#endif
