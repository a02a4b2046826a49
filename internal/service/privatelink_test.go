// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

const (
	blue  = "11111111-1111-1111-1111-11111111111a"
	green = "22222222-2222-2222-2222-22222222222b"
)

func published(changes ...func(*Service)) Service {
	return web(append([]func(*Service){with(PLSCreate, "true")}, changes...)...)
}

func spellLink(l *PrivateLink) string {
	if l == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s subnet %s, %d of %v, for %v, proxy %v, seen by %v, approved %v",
		l.ResourceGroup, l.Name, l.Subnet, l.Count, l.Addresses, l.FQDNs, l.ProxyProtocol, l.Visibility, l.AutoApproval)
}

func TestAnnotationsOfPrivateLinkServices(t *testing.T) {
	const usual = "/ subnet nodes, 1 of [], for [], proxy false, seen by [], approved []"
	for _, tt := range []struct {
		about   string
		service Service
		want    string
	}{
		{"nobody asks", web(), "none"},
		{"nobody asks, whatever else is said", web(with(PLSCreate, "false"), with(PLSCount, "99"), with(PLSName, "/")), "none"},
		{"the least", published(), usual},
		{"in capitals", web(with(PLSCreate, "True")), usual},
		{"a name and a group", published(with(PLSName, "mine"), with(PLSResourceGroup, "links")), strings.Replace(usual, "/", "links/mine", 1)},
		{"a subnet", published(with(PLSSubnet, "nat")), strings.Replace(usual, "nodes", "nat", 1)},
		{"the internal subnet", published(internal, with(InternalSubnet, "apps")), strings.Replace(usual, "nodes", "apps", 1)},
		{"its own before the internal one", published(internal, with(InternalSubnet, "apps"), with(PLSSubnet, "nat")), strings.Replace(usual, "nodes", "nat", 1)},
		{"the internal subnet of a public Service", published(with(InternalSubnet, "apps")), usual},
		{"addresses that Azure chooses", published(with(PLSCount, "8")), strings.Replace(usual, "1 of", "8 of", 1)},
		{"some that are fixed", published(with(PLSCount, "3"), with(PLSAddresses, " 10.0.0.9  10.0.0.7 ")), strings.Replace(usual, "1 of []", "3 of [10.0.0.9 10.0.0.7]", 1)},
		{"names", published(with(PLSFQDNs, "a.example.com b A.example.com")), strings.Replace(usual, "for []", "for [a.example.com b]", 1)},
		{"PROXY protocol", published(with(PLSProxyProtocol, "true")), strings.Replace(usual, "proxy false", "proxy true", 1)},
		{"everybody", published(with(PLSVisibility, "*"), with(PLSAutoApproval, green+" "+blue)), strings.Replace(usual, "by [], approved []", "by [*], approved ["+blue+" "+green+"]", 1)},
		{"some", published(with(PLSVisibility, green+"  "+strings.ToUpper(blue)+" "+blue), with(PLSAutoApproval, strings.ToUpper(green))),
			strings.Replace(usual, "by [], approved []", "by ["+blue+" "+green+"], approved ["+green+"]", 1)},
	} {
		t.Run(tt.about, func(t *testing.T) {
			got, problems := LinkOf(tt.service, settings())
			if len(problems) > 0 || spellLink(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", spellLink(got), problems, tt.want)
			}
		})
	}
}

func TestBadAnnotationsOfPrivateLinkServices(t *testing.T) {
	for _, tt := range []struct{ field, value, want string }{
		{PLSCreate, "yes", `"true" or "false"`},
		{PLSName, "-x", "the name of a Private Link Service"},
		{PLSName, strings.Repeat("x", 81), "the name of a Private Link Service"},
		{PLSResourceGroup, "a/b", "the name of a resource group"},
		{PLSSubnet, "/subscriptions/s", "the name of a subnet"},
		{PLSCount, "0", "from 1 to 8"},
		{PLSCount, "9", "from 1 to 8"},
		{PLSCount, "two", "from 1 to 8"},
		{PLSAddresses, "10.0.0.7 10.0.0.8", "no more addresses than " + PLSCount + ", which is 1"},
		{PLSAddresses, "10.0.0.7,10.0.0.8", "separated by spaces"},
		{PLSAddresses, "fd00::7", "IPv4"},
		{PLSAddresses, "::ffff:10.0.0.7", "IPv4"},
		{PLSFQDNs, "a.example.com,b.example.com", "separated by spaces"},
		{PLSFQDNs, "*.example.com", "names such as"},
		{PLSFQDNs, "a..b", "names such as"},
		{PLSFQDNs, strings.ReplaceAll(joined(101, func(i int) string { return fmt.Sprintf("n%d", i) }), ",", " "), "at most 100"},
		{PLSProxyProtocol, "on", `"true" or "false"`},
		{PLSVisibility, "blue", "ids of subscriptions"},
		{PLSVisibility, "* " + blue, `"*" alone`},
		{PLSAutoApproval, "*", "ids of subscriptions"},
		{PLSAutoApproval, blue, PLSVisibility + " has"},
	} {
		t.Run(tt.field[len(prefix):]+" "+tt.value[:min(len(tt.value), 20)], func(t *testing.T) {
			got, problems := LinkOf(published(with(tt.field, tt.value)), settings())
			if got != nil || len(problems) != 1 || problems[0].Field != tt.field || problems[0].Value == "" || !strings.Contains(problems[0].Want, tt.want) {
				t.Errorf("%+v, %v", got, problems)
			}
		})
	}
	if _, problems := LinkOf(published(with(PLSCount, "2"), with(PLSAddresses, "10.0.0.7 10.0.0.7")), settings()); len(problems) != 1 || problems[0].Want != "each address once" {
		t.Errorf("twice: %v", problems)
	}
	if _, problems := LinkOf(published(), Settings{}); len(problems) != 1 || !strings.Contains(problems[0].Want, "azure.json") {
		t.Errorf("no network: %v", problems)
	}
	if _, problems := LinkOf(published(with(PLSCount, "x"), with(PLSVisibility, "x"), with(PLSName, "")), settings()); len(problems) != 2 {
		t.Errorf("all that is wrong is named: %v", problems)
	}
}

// Only annotations that are set are compared with the owner's.
func TestUnlike(t *testing.T) {
	link := func(changes ...func(*Service)) *PrivateLink {
		l, problems := LinkOf(published(changes...), settings())
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return l
	}
	owner := link(with(PLSCount, "2"), with(PLSAddresses, "10.0.0.7"), with(PLSVisibility, blue+" "+green), with(PLSFQDNs, "b a"), with(PLSProxyProtocol, "true"))
	for _, tt := range []struct {
		about string
		link  *PrivateLink
		want  []string
	}{
		{"says nothing", link(), nil},
		{"says the same", link(with(PLSCount, "2"), with(PLSVisibility, strings.ToUpper(green)+" "+blue), with(PLSFQDNs, "A B"), with(PLSSubnet, "Nodes")), nil},
		{"says other things", link(with(PLSCount, "3"), with(PLSProxyProtocol, "false"), with(PLSVisibility, "*"), with(PLSAutoApproval, blue)), []string{PLSCount, PLSProxyProtocol, PLSVisibility, PLSAutoApproval}},
	} {
		var fields []string
		for _, p := range tt.link.Unlike(owner, "shop/web") {
			fields = append(fields, p.Field)
			if !strings.Contains(p.Error(), "shop/web") {
				t.Errorf("%s: %v", tt.about, p)
			}
		}
		if !slices.Equal(fields, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.about, fields, tt.want)
		}
	}
}

// Any input gives either a valid request or a short problem.
func FuzzLinkOf(f *testing.F) {
	f.Add(PLSAddresses, "10.0.0.7 10.0.0.8", PLSCount, "2")
	f.Add(PLSVisibility, blue, PLSAutoApproval, "*")
	f.Add(PLSName, "x", PLSResourceGroup, "rg.")
	f.Add(PLSFQDNs, "a.b. *.c", PLSSubnet, "s")
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		l, problems := LinkOf(published(with(name1, value1), with(name2, value2)), settings())
		for _, p := range problems {
			if len(p.Error()) > 1000 || strings.ContainsAny(p.Error(), "\n\x1b") {
				t.Errorf("%q", p.Error())
			}
		}
		if l == nil || len(problems) > 0 {
			if l != nil {
				t.Error("both")
			}
			return
		}
		id := lb.ResourceID{SubscriptionID: "s", ResourceGroup: "g" + l.ResourceGroup, Type: lb.TypePrivateLinkService, Name: "n" + l.Name}
		if err := id.Validate(); err != nil {
			t.Error(err)
		}
		if l.Count < 1 || l.Count > lb.MostNATAddresses || len(l.Addresses) > l.Count || strings.Contains(l.Subnet, "/") || l.Subnet == "" {
			t.Errorf("%+v", l)
		}
		for _, name := range slices.Concat(l.FQDNs, l.Visibility, l.AutoApproval) {
			if name == "" || len(name) > 253 || strings.ContainsAny(name, " /\"\x00") {
				t.Errorf("%q", name)
			}
		}
		if len(l.Unlike(l, "n/s")) > 0 {
			t.Errorf("unlike itself: %v", l.Unlike(l, "n/s"))
		}
	})
}
