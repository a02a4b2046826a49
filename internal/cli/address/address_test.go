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

// fakeAzure has public IPs, and the names of those that were deleted and written.
type fakeAzure struct {
	ips     []lb.PublicIP
	deleted []string
	written []string
}

func (f *fakeAzure) PutPublicIP(_ context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	f.written = append(f.written, ip.ID.Name)
	return ip, nil
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

func TestClaim(t *testing.T) {
	for _, c := range []struct {
		name, service string
		dryRun, json  bool
		written, out  string
		err           string
	}{
		{name: "OTHER", written: "other", out: "public IP other (198.18.0.1) claimed for Service shop/web of cluster c; it was of Service shop/web of cluster d\n"},
		{name: "other", service: "shop/api", dryRun: true, out: "public IP other (198.18.0.1) would be claimed for Service shop/api of cluster c; it was of Service shop/web of cluster d\n"},
		{name: "own", out: "public IP own (198.18.0.1) is claimed already for Service shop/web of cluster c; it was of Service shop/web of cluster c\n"},
		{name: "other", json: true, written: "other", out: `{"name":"other","resourceGroup":"rg","address":"198.18.0.1","cluster":"c","service":"shop/web","since":"2026-11-28T04:00:00Z","formerCluster":"d","formerService":"shop/web","changed":true,"dryRun":false}` + "\n"},
		{name: "used", err: "is in use"},
		{name: "none", err: "no public IP none"},
	} {
		azure := &fakeAzure{ips: []lb.PublicIP{retained("own", "c", ""), retained("used", "d", "/x"), retained("other", "d", "")}}
		var out strings.Builder
		err := Command{Azure: azure, ResourceGroup: "rg", ClusterName: "c", Out: &out, DryRun: c.dryRun, JSON: c.json}.Claim(t.Context(), c.name, c.service)
		if strings.Join(azure.written, " ") != c.written || out.String() != c.out || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: written %v, %v\n%s", c, azure.written, err, out.String())
		}
	}
}
