// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/service"
)

func TestPoolAmong(t *testing.T) {
	const usual = "a-b-c"
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	first, second := "a/b-c", "a-b/c"
	hashed := service.HashedPoolName(usual, second)
	if hashed == service.HashedPoolName(usual, first) || !strings.HasPrefix(hashed, usual+"-") {
		t.Fatalf("hashed names %s", hashed)
	}
	contender := func(key string, created time.Time, have ...string) service.PoolUser {
		return service.PoolUser{Key: key, Created: created, PoolNames: have}
	}
	for _, tt := range []struct {
		name   string
		c      service.PoolUser
		rivals []service.PoolUser
		want   string
	}{
		{"alone", contender(second, late), nil, usual},
		{"the older", contender(second, early), []service.PoolUser{contender(first, late)}, usual},
		{"the younger", contender(second, late), []service.PoolUser{contender(first, early)}, hashed},
		{"as old, later by name", contender(first, early), []service.PoolUser{contender(second, early)}, service.HashedPoolName(usual, first)},
		{"the younger has it", contender(second, late, usual), []service.PoolUser{contender(first, early)}, usual},
		{"the older comes back to it", contender(second, early), []service.PoolUser{contender(first, late, "A-B-C")}, hashed},
		{"the other has a name of its own", contender(second, late), []service.PoolUser{contender(first, early, service.HashedPoolName(usual, first))}, usual},
		{"it has one of its own, and the other is gone", contender(second, late, hashed), nil, hashed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := service.ChoosePoolName(usual, tt.c, tt.rivals); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// No two Services get the same pool, and none gets another pool, whatever Services are created and deleted
// and whenever the controller restarts.
func TestPoolsOfServicesStayApart(t *testing.T) {
	keys := []string{"a/b-c-d", "a-b/c-d", "a-b-c/d"}
	rapid.Check(t, func(t *rapid.T) {
		present, created := map[string]string{}, map[string]time.Time{}
		for step := range rapid.IntRange(1, 20).Draw(t, "steps") {
			key := rapid.SampledFrom(keys).Draw(t, "service")
			switch _, ok := created[key]; {
			case !ok:
				created[key] = time.Unix(int64(rapid.IntRange(0, step).Draw(t, "created")), 0)
			case rapid.Bool().Draw(t, "goes"):
				delete(created, key)
				delete(present, key)
			default:
				contender := func(key string) service.PoolUser {
					c := service.PoolUser{Key: key, Created: created[key]}
					if present[key] != "" {
						c.PoolNames = []string{present[key]}
					}
					return c
				}
				var rivals []service.PoolUser
				for other := range created {
					if other != key {
						rivals = append(rivals, contender(other))
					}
				}
				got := service.ChoosePoolName("a-b-c-d", contender(key), rivals)
				if present[key] != "" && got != present[key] {
					t.Fatalf("%s had %s, and is given %s", key, present[key], got)
				}
				present[key] = got
			}
			for a, single := range present {
				for b, other := range present {
					if a != b && single == other {
						t.Fatalf("%s and %s both have %s", a, b, single)
					}
				}
			}
		}
	})
}
