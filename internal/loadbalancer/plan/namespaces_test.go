// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// Services that share an address affect each other: access and removal. So other namespaces are rejected.
func TestNoAddressIsSharedAcrossNamespaces(t *testing.T) {
	names := map[string]string{"aa": "shop/web", "ab": "shop/admin", "ac": "mallory/web"}
	in := Input{Observed: foreign(), ServiceOf: func(rule string) string {
		owner, _, _ := strings.Cut(rule, "-")
		return names[owner]
	}, AddressAt: func(string) string { return "198.18.0.1" }}
	at := func(s ServiceParts) ServiceParts { s.Frontends[0].PublicIP = "/PIP/aa"; return s }
	host, same, other := newTestParts("aa", 80), at(newTestParts("ab", 81)), at(newTestParts("ac", 82))

	in.Services = []ServiceParts{host, same, other}
	p := Make(in)
	if err := p.Rejected["ac"]; len(p.Rejected) != 1 || !errors.Is(err, ErrAddressTaken) || !strings.Contains(err.Error(), "rule aa-TCP-80 of Service shop/web has 198.18.0.1") {
		t.Fatalf("refused %v", p.Rejected)
	}
	// A later Service is rejected too, and the host may leave or change its address.
	in.Observed, in.Services, in.Others = p.Next, []ServiceParts{other}, []string{"aa", "ab"}
	if p := Make(in); !errors.Is(p.Rejected["ac"], ErrAddressTaken) || !p.IsEmpty() {
		t.Fatalf("refused %v, changes %v", p.Rejected, spell(p.Changes))
	}
	// Also if it is due together with its host, ahead of it, or while the host moves.
	moved := newTestParts("aa", 80)
	moved.Frontends[0].PublicIP = "/pip/new"
	for _, host := range []ServiceParts{host, moved, gone("aa")} {
		in.Services, in.Others = []ServiceParts{other, host}, []string{"ab"}
		if p := Make(in); !errors.Is(p.Rejected["ac"], ErrAddressTaken) || errors.Is(p.Rejected["aa"], ErrAddressTaken) {
			t.Errorf("refused %v", p.Rejected)
		}
	}
	// Existing sharing continues.
	unnamed := in
	unnamed.ServiceOf, unnamed.Services = nil, []ServiceParts{other}
	in.Observed = Make(unnamed).Next
	for _, due := range [][]ServiceParts{{other}, {host}, {host, other}, {at(newTestParts("ac", 82, 83))}} {
		in.Services, in.Others = due, []string{"aa", "ab", "ac"}
		if p := Make(in); len(p.Rejected) > 0 {
			t.Errorf("of %s: refused %v", due[0].Owner, p.Rejected)
		}
	}
}

// A frontend without rules (all ports annotated with no_lb_rule) belongs to its Service's namespace.
func TestAFrontendWithoutRulesIsNotShared(t *testing.T) {
	at := func(s ServiceParts, host string) ServiceParts {
		s.Frontends = []lb.Frontend{{Name: s.Owner, PublicIP: "/pip/" + host}}
		return s
	}
	host, same, other := inNamespace("shop", 1, 1), at(inNamespace("shop", 2, 1), "shop1"), at(inNamespace("mallory", 1, 1), "shop1")
	host.Rules, host.Probes = nil, nil
	bare := other
	bare.Rules, bare.Probes = nil, nil
	for _, intruder := range []ServiceParts{other, bare} {
		in := shared(1500, host, same, intruder)
		p := Make(in)
		if err := p.Rejected["mallory1"]; len(p.Rejected) != 1 || !errors.Is(err, ErrAddressTaken) {
			t.Errorf("due together: refused %v", p.Rejected)
		}
		in.Services = []ServiceParts{host}
		in, _ = with(in)
		moved := at(host, "new")
		for _, due := range [][]ServiceParts{{intruder}, {intruder, host}, {intruder, moved}, {intruder, gone("shop1")}, {same, intruder}} {
			in.Services = due
			p := Make(in)
			if err := p.Rejected["mallory1"]; len(p.Rejected) != 1 || !errors.Is(err, ErrAddressTaken) {
				t.Errorf("%v: refused %v", due[len(due)-1].Owner, p.Rejected)
			}
		}
		in.Services, in.AddressAt = []ServiceParts{intruder}, func(string) string { return "198.18.0.1" }
		if err := Make(in).Rejected["mallory1"]; err == nil || !strings.Contains(err.Error(), "frontend shop1 of Service shop/shop1 has 198.18.0.1. Choose another address") {
			t.Errorf("the rejection is %v", err)
		}
	}
	// The host gets its rules although another namespace joined before.
	in := shared(1500, host)
	in, _ = with(in)
	unnamed := in
	unnamed.ServiceOf, unnamed.Services = nil, []ServiceParts{other}
	in.Observed = Make(unnamed).Next
	back := inNamespace("shop", 1, 2)
	back.Rules = back.Rules[1:]
	for _, due := range []ServiceParts{back, other} {
		in.Services = []ServiceParts{due}
		if p := Make(in); len(p.Rejected) > 0 {
			t.Errorf("%s: refused %v", due.Owner, p.Rejected)
		}
	}
}

// A rejection names the kind of the owner: a Gateway is planned as a Service.
func TestARejectionNamesTheGateway(t *testing.T) {
	names := map[string]string{"aa": "shop/gateway:edge", "ab": "shop/web", "ac": "mallory/web"}
	in := Input{Observed: foreign(), ServiceOf: func(rule string) string {
		owner, _, _ := strings.Cut(rule, "-")
		return names[owner]
	}}
	at := func(s ServiceParts) ServiceParts { s.Frontends[0].PublicIP = "/PIP/aa"; return s }
	in.Services = []ServiceParts{newTestParts("aa", 80), at(newTestParts("ab", 80)), at(newTestParts("ac", 81))}
	rejected := Make(in).Rejected
	for owner, want := range map[string]string{"ab": "by rule aa-TCP-80 of Gateway shop/edge, Tcp port 80. Choose another port or address, or delete that Gateway: ", "ac": "rule aa-TCP-80 of Gateway shop/edge has "} {
		if err := rejected[owner]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is rejected with %v, want %q", owner, err, want)
		}
	}
}
