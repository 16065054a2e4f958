// What the generated bindings and the compiler need of a C library; `runtime.c` has it.
#ifndef STRING_H
#define STRING_H
#include <stddef.h>
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *one, const void *other, size_t size);
size_t strlen(const char *text);
#endif
