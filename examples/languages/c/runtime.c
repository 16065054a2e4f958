// The little that a decider needs of a C library, without one: memory that only rises (an instance lives for one call, so nothing
// is worth freeing), and an abort that traps.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 65536u

extern unsigned char __heap_base; // from the linker: where the static data ends
static uintptr_t next;            // the first free address; 0 before the first allocation
static uintptr_t newest;          // the block that was given out last

void *malloc(size_t size) {
    if (next == 0) next = (uintptr_t)&__heap_base;
    uintptr_t start = (next + 15) & ~(uintptr_t)15;
    uintptr_t end = start + size;
    if (end < start) abort();
    uintptr_t pages = ((uint64_t)end + PAGE - 1) / PAGE;
    uintptr_t have = __builtin_wasm_memory_size(0);
    // An eighth more than asked, so that large tables do not grow page by page.
    if (pages > have && __builtin_wasm_memory_grow(0, pages - have + have / 8) == (size_t)-1 &&
        __builtin_wasm_memory_grow(0, pages - have) == (size_t)-1) abort();
    newest = start;
    next = end;
    return (void *)start;
}

void *realloc(void *block, size_t size) {
    if (block == NULL) return malloc(size);
    if ((uintptr_t)block == newest) {
        // The last block grows where it is: what lies above is fresh.
        next = newest;
        return malloc(size);
    }
    // Its length is not known; no more of it can be there than lies below the first free address.
    size_t there = next - (uintptr_t)block;
    return memcpy(malloc(size), block, size < there ? size : there);
}

void free(void *block) { (void)block; }

_Noreturn void abort(void) { __builtin_trap(); }

// Plain loops that the compiler must not turn into calls of themselves (`-fno-builtin`).
void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *out = to;
    const unsigned char *in = from;
    while (size-- > 0) *out++ = *in++;
    return to;
}

void *memset(void *to, int byte, size_t size) {
    unsigned char *out = to;
    while (size-- > 0) *out++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *one, const void *other, size_t size) {
    const unsigned char *a = one, *b = other;
    for (; size > 0; size--, a++, b++) {
        if (*a != *b) return *a < *b ? -1 : 1;
    }
    return 0;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length] != 0) length++;
    return length;
}
