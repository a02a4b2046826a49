// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/lb"
)

// What was observed follows reads of a group, writes and deletions; a failed read changes nothing.
func TestListObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		k := New(Config{Azure: c})
		link := func(group, name string) lb.PrivateLinkService {
			return lb.PrivateLinkService{ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: group, Type: lb.TypePrivateLinkService, Name: name}, Frontends: []string{"f"}}
		}
		expect := func(about string, want int) {
			t.Helper()
			if got := k.ListObserved(); len(got) != want {
				t.Errorf("%s: %v, want %d", about, got, want)
			}
		}
		for _, p := range []lb.PrivateLinkService{link("rg", "a"), link("other", "b")} {
			if _, err := k.cfg.Azure.Put(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		expect("after writes", 2)
		if err := k.cfg.Azure.Delete(t.Context(), link("RG", "A")); err != nil {
			t.Fatal(err)
		}
		expect("after a deletion", 1)
		delete(c.links, link("other", "b").ID.Key())
		c.closes = "other"
		_, err := k.cfg.Azure.List(t.Context(), "s", "other")
		expect("after a failed read", 1)
		c.closes = ""
		if _, listErr := k.cfg.Azure.List(t.Context(), "S", "Other"); err == nil || listErr != nil {
			t.Error(err, listErr)
		}
		expect("after a read", 0)
	})
}
