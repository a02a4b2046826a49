// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func fresh(text string) string { return string([]byte(text)) }

func same(x, y string) bool { return x == y && unsafe.StringData(x) == unsafe.StringData(y) }

// Equal strings share memory.
func TestATextIsInMemoryOnce(t *testing.T) {
	a := Intern(fresh("10.0.0.1"))
	for range 3 {
		runtime.GC()
	}
	if b := Intern(fresh("10.0.0.1")); !same(a, b) {
		t.Error("it is in memory twice")
	}
	whole := fresh("a load balancer's name in a text that is long")
	if part := Intern(whole[2:15]); part != "load balancer" || unsafe.StringData(part) == unsafe.StringData(whole[2:15]) {
		t.Errorf("%q keeps the text that it was cut from", part)
	}
}

// Long strings are not interned, and their number is limited.
func TestInternedTextIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxLength+1)
	if Intern(long); table.texts[long] != "" {
		t.Error("a long text is kept")
	}
	for i := range 3 * maxEntries {
		if text := fmt.Sprint("node-", i); Intern(text) != text {
			t.Fatal(text)
		}
	}
	if len(table.texts) > maxEntries {
		t.Errorf("%d texts are kept", len(table.texts))
	}
}
