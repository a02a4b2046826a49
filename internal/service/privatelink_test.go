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

func linkedService(changes ...func(*Service)) Service {
	return newService(append([]func(*Service){withAnnotation(PLSCreate, "true")}, changes...)...)
}

func formatLink(l *PrivateLink) string {
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
		{"nobody asks", newService(), "none"},
		{"nobody asks, whatever else is said", newService(withAnnotation(PLSCreate, "false"), withAnnotation(PLSCount, "99"), withAnnotation(PLSName, "/")), "none"},
		{"the least", linkedService(), usual},
		{"in capitals", newService(withAnnotation(PLSCreate, "True")), usual},
		{"a name and a group", linkedService(withAnnotation(PLSName, "mine"), withAnnotation(PLSResourceGroup, "links")), strings.Replace(usual, "/", "links/mine", 1)},
		{"a subnet", linkedService(withAnnotation(PLSSubnet, "nat")), strings.Replace(usual, "nodes", "nat", 1)},
		{"the internal subnet", linkedService(asInternal, withAnnotation(InternalSubnet, "apps")), strings.Replace(usual, "nodes", "apps", 1)},
		{"its own before the internal one", linkedService(asInternal, withAnnotation(InternalSubnet, "apps"), withAnnotation(PLSSubnet, "nat")), strings.Replace(usual, "nodes", "nat", 1)},
		{"the internal subnet of a public Service", linkedService(withAnnotation(InternalSubnet, "apps")), usual},
		{"addresses that Azure chooses", linkedService(withAnnotation(PLSCount, "8")), strings.Replace(usual, "1 of", "8 of", 1)},
		{"some that are fixed", linkedService(withAnnotation(PLSCount, "3"), withAnnotation(PLSAddresses, " 10.0.0.9  10.0.0.7 ")), strings.Replace(usual, "1 of []", "3 of [10.0.0.9 10.0.0.7]", 1)},
		{"names", linkedService(withAnnotation(PLSFQDNs, "a.example.com b A.example.com")), strings.Replace(usual, "for []", "for [a.example.com b]", 1)},
		{"PROXY protocol", linkedService(withAnnotation(PLSProxyProtocol, "true")), strings.Replace(usual, "proxy false", "proxy true", 1)},
		{"everybody", linkedService(withAnnotation(PLSVisibility, "*"), withAnnotation(PLSAutoApproval, green+" "+blue)), strings.Replace(usual, "by [], approved []", "by [*], approved ["+blue+" "+green+"]", 1)},
		{"some", linkedService(withAnnotation(PLSVisibility, green+"  "+strings.ToUpper(blue)+" "+blue), withAnnotation(PLSAutoApproval, strings.ToUpper(green))),
			strings.Replace(usual, "by [], approved []", "by ["+blue+" "+green+"], approved ["+green+"]", 1)},
	} {
		t.Run(tt.about, func(t *testing.T) {
			got, problems := LinkOf(tt.service, testSettings())
			if len(problems) > 0 || formatLink(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", formatLink(got), problems, tt.want)
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
		{PLSFQDNs, strings.ReplaceAll(joinTexts(101, func(i int) string { return fmt.Sprintf("n%d", i) }), ",", " "), "at most 100"},
		{PLSProxyProtocol, "on", `"true" or "false"`},
		{PLSVisibility, "blue", "ids of subscriptions"},
		{PLSVisibility, "* " + blue, `"*" alone`},
		{PLSAutoApproval, "*", "ids of subscriptions"},
		{PLSAutoApproval, blue, PLSVisibility + " has"},
	} {
		t.Run(tt.field[len(prefix):]+" "+tt.value[:min(len(tt.value), 20)], func(t *testing.T) {
			got, problems := LinkOf(linkedService(withAnnotation(tt.field, tt.value)), testSettings())
			if got != nil || len(problems) != 1 || problems[0].Field != tt.field || problems[0].Value == "" || !strings.Contains(problems[0].Expected, tt.want) {
				t.Errorf("%+v, %v", got, problems)
			}
		})
	}
	if _, problems := LinkOf(linkedService(withAnnotation(PLSCount, "2"), withAnnotation(PLSAddresses, "10.0.0.7 10.0.0.7")), testSettings()); len(problems) != 1 || problems[0].Expected != "each address once" {
		t.Errorf("twice: %v", problems)
	}
	if _, problems := LinkOf(linkedService(), Settings{}); len(problems) != 1 || !strings.Contains(problems[0].Expected, "azure.json") {
		t.Errorf("no network: %v", problems)
	}
	if _, problems := LinkOf(linkedService(withAnnotation(PLSCount, "x"), withAnnotation(PLSVisibility, "x"), withAnnotation(PLSName, "")), testSettings()); len(problems) != 2 {
		t.Errorf("all that is wrong is named: %v", problems)
	}
}

// Only annotations that are set are compared with the owner's.
func TestUnlike(t *testing.T) {
	link := func(changes ...func(*Service)) *PrivateLink {
		l, problems := LinkOf(linkedService(changes...), testSettings())
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return l
	}
	owner := link(withAnnotation(PLSCount, "2"), withAnnotation(PLSAddresses, "10.0.0.7"), withAnnotation(PLSVisibility, blue+" "+green), withAnnotation(PLSFQDNs, "b a"), withAnnotation(PLSProxyProtocol, "true"))
	for _, tt := range []struct {
		about string
		link  *PrivateLink
		want  []string
	}{
		{"says nothing", link(), nil},
		{"says the same", link(withAnnotation(PLSCount, "2"), withAnnotation(PLSVisibility, strings.ToUpper(green)+" "+blue), withAnnotation(PLSFQDNs, "A B"), withAnnotation(PLSSubnet, "Nodes")), nil},
		{"says other things", link(withAnnotation(PLSCount, "3"), withAnnotation(PLSProxyProtocol, "false"), withAnnotation(PLSVisibility, "*"), withAnnotation(PLSAutoApproval, blue)), []string{PLSCount, PLSProxyProtocol, PLSVisibility, PLSAutoApproval}},
	} {
		var fields []string
		for _, p := range tt.link.DiffFromOwner(owner, "shop/web") {
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
		l, problems := LinkOf(linkedService(withAnnotation(name1, value1), withAnnotation(name2, value2)), testSettings())
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
		if l.Count < 1 || l.Count > lb.MaxNATAddresses || len(l.Addresses) > l.Count || strings.Contains(l.Subnet, "/") || l.Subnet == "" {
			t.Errorf("%+v", l)
		}
		for _, name := range slices.Concat(l.FQDNs, l.Visibility, l.AutoApproval) {
			if name == "" || len(name) > 253 || strings.ContainsAny(name, " /\"\x00") {
				t.Errorf("%q", name)
			}
		}
		if len(l.DiffFromOwner(l, "n/s")) > 0 {
			t.Errorf("unlike itself: %v", l.DiffFromOwner(l, "n/s"))
		}
	})
}
