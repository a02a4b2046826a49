// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// fakeAzure has public IPs, and the names of those that were deleted.
type fakeAzure struct {
	ips     []lb.PublicIP
	deleted []string
}

func (f *fakeAzure) ListPublicIPs(context.Context, string, string) ([]lb.PublicIP, error) {
	return f.ips, nil
}

func (f *fakeAzure) DeletePublicIP(_ context.Context, ip lb.PublicIP) error {
	f.deleted = append(f.deleted, ip.ID.Name)
	return nil
}

func retained(name, cluster, usedBy string) lb.PublicIP {
	return lb.PublicIP{
		ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: name}, Address: netip.MustParseAddr("198.18.0.1"), UsedBy: usedBy,
		Tags: map[string]string{"k8s-azure-cluster-name": cluster, "k8s-azure-service": "shop/web", "weir-retained-since": "2026-11-28T04:00:00Z"},
	}
}

func TestRelease(t *testing.T) {
	plain := retained("plain", "c", "")
	plain.Tags = nil
	for _, c := range []struct{ names, deleted, err string }{
		{"free", "free", ""},
		{"free used", "", "in use"},
		{"free plain", "", "no public IP plain"},
		{"other", "", "no public IP other"}, // of another cluster
	} {
		azure := &fakeAzure{ips: []lb.PublicIP{retained("free", "c", ""), retained("used", "c", "/x"), retained("other", "d", ""), plain}}
		var out strings.Builder
		err := Command{Azure: azure, ResourceGroup: "rg", ClusterName: "c", Out: &out}.Release(t.Context(), strings.Fields(c.names))
		if !slices.Equal(azure.deleted, strings.Fields(c.deleted)) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: deleted %v, error %v", c.names, azure.deleted, err)
		}
	}
}

func TestList(t *testing.T) {
	azure := &fakeAzure{ips: []lb.PublicIP{retained("free", "c", ""), retained("other", "d", "")}}
	for _, asJSON := range []bool{false, true} {
		var out strings.Builder
		if err := (Command{Azure: azure, ResourceGroup: "rg", ClusterName: "c", Out: &out, JSON: asJSON}).List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "free") || !strings.Contains(text, "shop/web") || strings.Contains(text, "other") {
			t.Errorf("%s", text)
		}
	}
}
