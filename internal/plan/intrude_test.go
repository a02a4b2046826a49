// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"strings"
	"testing"
)

// Whoever shares an address has a say in it: who may connect to it, and whether its Service
// can leave it. So no Service of another namespace comes in.
func TestNobodySharesTheAddressOfAnotherNamespace(t *testing.T) {
	names := map[string]string{"aa": "shop/web", "ab": "shop/admin", "ac": "mallory/web"}
	in := Input{Observed: foreign(), ServiceOf: func(rule string) string {
		owner, _, _ := strings.Cut(rule, "-")
		return names[owner]
	}, AddressAt: func(string) string { return "198.18.0.1" }}
	at := func(s Share) Share { s.Frontends[0].PublicIP = "/PIP/aa"; return s }
	host, same, other := service("aa", 80), at(service("ab", 81)), at(service("ac", 82))

	in.Shares = []Share{host, same, other}
	p := Make(in)
	if err := p.Refused["ac"]; len(p.Refused) != 1 || !errors.Is(err, ErrAddressTaken) || !strings.Contains(err.Error(), "rule aa-TCP-80 of Service shop/web has 198.18.0.1") {
		t.Fatalf("refused %v", p.Refused)
	}
	// Whoever comes later is refused, too, and its host may go, or take another address.
	in.Observed, in.Shares, in.Others = p.Next, []Share{other}, []string{"aa", "ab"}
	if p := Make(in); !errors.Is(p.Refused["ac"], ErrAddressTaken) || !p.Empty() {
		t.Fatalf("refused %v, changes %v", p.Refused, spell(p.Changes))
	}
	// Nor comes in who is due with its host, and ahead of it, or while it moves away.
	moved := service("aa", 80)
	moved.Frontends[0].PublicIP = "/pip/new"
	for _, host := range []Share{host, moved, gone("aa")} {
		in.Shares, in.Others = []Share{other, host}, []string{"ab"}
		if p := Make(in); !errors.Is(p.Refused["ac"], ErrAddressTaken) || errors.Is(p.Refused["aa"], ErrAddressTaken) {
			t.Errorf("refused %v", p.Refused)
		}
	}
	// Where two share one already, nothing is taken away from either.
	unnamed := in
	unnamed.ServiceOf, unnamed.Shares = nil, []Share{other}
	in.Observed = Make(unnamed).Next
	for _, due := range [][]Share{{other}, {host}, {host, other}, {at(service("ac", 82, 83))}} {
		in.Shares, in.Others = due, []string{"aa", "ab", "ac"}
		if p := Make(in); len(p.Refused) > 0 {
			t.Errorf("of %s: refused %v", due[0].Owner, p.Refused)
		}
	}
}
