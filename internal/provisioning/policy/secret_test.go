// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Cleaning equals trying each form at each position, longest first.
func TestLawRedaction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.SampledFrom([]rune("abc\n")), 0, 12, -1)
		var r secretFilter
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			r = r.addSecrets(rapid.SliceOfN(word, 0, 6).Draw(t, "secrets"))
		}
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abc ")), 0, 40, -1).Draw(t, "text")
		forms := slices.Clone(r.forms)
		slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
		var pairs []string
		for _, form := range forms {
			pairs = append(pairs, form, hidden)
		}
		if got, want := r.cleanText(text), strings.NewReplacer(pairs...).Replace(text); got != want {
			t.Fatalf("%q without %q is %q, want %q", text, forms, got, want)
		}
	})
}

// The memory for secrets is bounded for any bytes: 1 MiB of 0x01 is 6 MiB as a JSON string.
func TestMemoryOfRedaction(t *testing.T) {
	const logs = 64
	lines := func(line string) func(int) string {
		return func(n int) string {
			var text strings.Builder
			for i := range 4000 {
				text.WriteString("\n" + line + strconv.Itoa(n*4000+i))
			}
			return text.String()
		}
	}
	for name, secret := range map[string]func(int) string{
		"one large value": func(n int) string { return strings.Repeat("\x01", 1<<20) + strconv.Itoa(n) },
		"many values":     nil,
		"lines":           lines("line"),
		"binary lines":    lines("\x01\x02\x03\xff"),
		"empty lines":     func(int) string { return strings.Repeat("\n", 1<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heapInUse()
			items := make([]Log, logs)
			for n := range items {
				if secret != nil {
					items[n].HideSecrets(secret(n))
					continue
				}
				var many []string
				for i := range 4000 {
					many = append(many, strings.Repeat("\x01", 200)+strconv.Itoa(i*logs+n))
				}
				items[n].HideSecrets(many...)
			}
			took := int64(heapInUse()-before) / logs
			t.Logf("%d KiB each", took>>10)
			if took > maxHidden+maxHidden/4 {
				t.Errorf("%d KiB are kept by each log, want %d at most", took>>10, maxHidden>>10)
			}
			runtime.KeepAlive(items)
		})
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Text is withheld where the bound drops a secret.
func TestRedactionWithholds(t *testing.T) {
	secret := strings.Repeat("\x01secret", maxText/7+1)
	var l Log
	l.HideSecrets(secret)
	for _, text := range []string{"the value is " + secret, strconv.Quote(secret) + " is not valid"} {
		if got := l.CleanText(text); strings.Contains(got, "secret\x01") || strings.Contains(got, `secret\x01`) {
			t.Errorf("got %.80s", got)
		}
	}
	l.HideSecrets("hunter2")
	if got := l.CleanText("hunter2 and more"); got != "[hidden] and more" {
		t.Errorf("a short text is %q", got)
	}
	clone := l.Clone()
	var many []string
	for i := range maxHidden / 400 {
		many = append(many, "secret-"+strings.Repeat(strconv.Itoa(i)+".", 30))
	}
	l.HideSecrets(many...)
	l.HideSecrets("one more")
	if got := l.CleanText("with " + many[0] + " and hunter2"); got != tooManyForms {
		t.Errorf("with too many secrets: %q", got)
	}
	if got := clone.CleanText("hunter2 and one more"); got != "[hidden] and one more" {
		t.Errorf("a clone is %q", got)
	}
	resumed := l.Clone()
	resumed.Resume("2026-11-21T12:00:00Z attempt 1 begins\n")
	resumed.AddLine(time.Unix(0, 0), many[1])
	if got := resumed.Text(); strings.Contains(got, "secret-") || !strings.Contains(got, "attempt 1 begins") {
		t.Errorf("a log that goes on is %q", got)
	}
}
