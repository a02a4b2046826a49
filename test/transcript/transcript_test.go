// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"strings"
	"testing"
	"time"
)

func TestTranscriptMatchesItsFile(t *testing.T) {
	Compare(t, "alarm", func(_ *testing.T, x *Transcript) {
		began := time.Now()
		x.BeginChapter("It is set.")
		x.AddLine("it is %s", time.Since(began))
		time.Sleep(time.Hour)
		x.BeginChapter("It rings.")
		x.AddLine("it is %s", time.Since(began))
	})
}

func TestTranscriptDifferences(t *testing.T) {
	for _, c := range []struct{ name, got, want, wantText string }{
		{"the same", "\none\n  a\n", "\none\n  a\n", ""},
		{"another line", "\none\n  a\n  b\n", "\none\n  a\n  c\n", "f.txt:4:\n got   b\n\nwant   c\n\nafter\n\none\n  a\n"},
		{"a line more", "\none\n  a\n", "\none\n", "f.txt:3:\n got   a\n\nwant \nafter\n\none\n"},
		{"a line less", "\none\n", "\none\n  a\n", "f.txt:3:\n got \nwant   a\n\nafter\n\none\n"},
		{"the end of a line more", "\none", "\none\n", "f.txt:2:\n got one\nwant one\n\nafter\n\n"},
		{"nothing", "", "\none\n", "f.txt:1:\n got \nwant \n\nafter\n"},
		{"few lines before", strings.Repeat("x\n", 9) + "a\n", strings.Repeat("x\n", 9) + "b\n", "f.txt:10:\n got a\n\nwant b\n\nafter\n" + strings.Repeat("x\n", 6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := diffFile("f.txt", c.got, c.want); got != c.wantText {
				t.Errorf("got %q, want %q", got, c.wantText)
			}
		})
	}
}
