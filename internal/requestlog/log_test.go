// SPDX-License-Identifier: Apache-2.0

package requestlog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The latest Calls that fit are retained in order.
func TestLawTheLastThatFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 4000).Draw(t, "bytes")
		l := New(limit)
		var items []Call
		for i := range rapid.IntRange(0, 200).Draw(t, "calls") {
			c := Call{Op: "get", Status: i, Resource: strings.Repeat("x", rapid.IntRange(0, 500).Draw(t, "long"))}
			for range rapid.IntRange(0, 3).Draw(t, "causes") {
				c.Causes = append(c.Causes, Cause{"Service", "shop", "web"})
			}
			l.Add(c)
			if c.memorySize() <= limit {
				items = append(items, c)
			}
		}
		got := l.Select(Filter{})
		want, fits := len(items), 0
		for want > 0 && fits+items[want-1].memorySize() <= limit {
			want--
			fits += items[want].memorySize()
		}
		if len(got) != len(items)-want || l.bytes != fits {
			t.Fatalf("%d calls of %d bytes are kept, want %d of %d", len(got), l.bytes, len(items)-want, fits)
		}
		for i := range got {
			if got[i].Status != items[want+i].Status {
				t.Fatalf("call %d is that of %d, want %d", i, got[i].Status, items[want+i].Status)
			}
		}
	})
}

func TestSelect(t *testing.T) {
	at := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	l := New(1 << 20)
	for i, c := range []Call{
		{Op: "get", Resource: "/loadBalancers/LB1", Status: 200},
		{Op: "put", Resource: "/loadBalancers/lb1", Status: 429, Causes: []Cause{{"BackendPool", "shop", "web"}}},
		{Op: "put", Resource: "/loadBalancers/lb2", Status: 200, Causes: []Cause{{"Service", "shop", "web"}, {"Service", "shop", "api"}}},
		{Op: "poll", Resource: "/loadBalancers/lb2", Causes: []Cause{{"Service", "other", "web"}}},
	} {
		c.At = at.Add(time.Duration(i) * time.Minute)
		l.Add(c)
	}
	for _, tt := range []struct {
		name string
		f    Filter
		want string
	}{
		{"all", Filter{}, "get put put poll"},
		{"since", Filter{Since: at.Add(2 * time.Minute)}, "put poll"},
		{"a Service", Filter{Cause: Cause{"Service", "shop", "web"}}, "put"},
		{"one of that name anywhere", Filter{Cause: Cause{Kind: "Service", Name: "web"}}, "put poll"},
		{"all BackendPools", Filter{Cause: Cause{Kind: "BackendPool", Name: "*"}}, "put"},
		{"a resource", Filter{Resource: "LB1"}, "get put"},
		{"failed", Filter{Failed: true}, "put poll"},
	} {
		var got []string
		for _, c := range l.Select(tt.f) {
			got = append(got, c.Op)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

// Causes are in the context; inner ones replace outer ones.
func TestCauses(t *testing.T) {
	if ContextCauses(t.Context()) != nil {
		t.Error("a context has causes by itself")
	}
	many := make([]Cause, 100)
	for i := range many {
		many[i] = Cause{"Service", "shop", fmt.Sprint(i)}
	}
	ctx := WithCauses(t.Context(), many...)
	if got := ContextCauses(ctx); !slices.Equal(got, many[:MaxCauses]) {
		t.Errorf("%d causes", len(got))
	}
	if got := ContextCauses(WithCauses(ctx, many[99])); !slices.Equal(got, many[99:]) {
		t.Errorf("%v", got)
	}
	if got := ContextCauses(context.WithoutCancel(ctx)); len(got) != MaxCauses {
		t.Errorf("%d causes without the cancellation", len(got))
	}
}

func TestAddsSideBySide(t *testing.T) {
	l := New(10_000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l.Add(Call{Op: "get"})
				l.Select(Filter{Failed: true})
			}
		})
	}
	wg.Wait()
	if n := len(l.Select(Filter{})); n != 10_000/(&Call{Op: "get"}).memorySize() {
		t.Errorf("%d calls", n)
	}
}

// Add copies a Call and does not allocate once the ring has its size.
func BenchmarkAdd(b *testing.B) {
	l, c := New(1<<16), Call{Op: "put", Resource: strings.Repeat("x", 200), Causes: []Cause{{"Service", "shop", "web"}}}
	for range 1000 {
		l.Add(c)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Add(c)
	}
}
