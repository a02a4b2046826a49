// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/zones"
)

// A new public IP gets the zones that its Service names, otherwise those of azure.json, otherwise all of the region. One
// from a prefix gets those of the prefix. Zones that the region does not have are refused, and unknown ones delay nothing.
func TestZonesOfANewPublicIP(t *testing.T) {
	three := map[string][]string{"eastus": {"1", "2", "3"}}
	key := zones.Choice{IsSet: true, Zones: []string{"1", "2"}, Source: "key"}
	for about, tt := range map[string]struct {
		regions  map[string][]string
		key      zones.Choice
		named    []string
		prefix   string
		want     string
		wantText string
	}{
		"all of the region":          {regions: three, want: "1 2 3"},
		"azure.json":                 {regions: three, key: key, want: "1 2"},
		"none by azure.json":         {regions: three, key: zones.Choice{IsSet: true}, want: ""},
		"the Service":                {regions: three, key: key, named: []string{"3"}, want: "3"},
		"a prefix":                   {regions: three, key: key, prefix: "/prefix", want: ""},
		"a prefix and the Service":   {regions: three, prefix: "/prefix", named: []string{"3"}, want: "3"},
		"a region without zones":     {regions: map[string][]string{"eastus": nil}, want: ""},
		"zones that are not there":   {regions: three, named: []string{"4"}, wantText: "annotation weir.dev/zones names zone 4, and region eastus has zones 1, 2, 3"},
		"zones cannot be read":       {want: ""},
		"named and cannot be read":   {named: []string{"2"}, want: "2"},
		"azure.json names wrong one": {regions: three, key: zones.Choice{IsSet: true, Zones: []string{"9"}, Source: "key"}, wantText: "key names zone 9"},
	} {
		k, azure := keeperOf()
		k.cfg.DefaultZones = tt.key
		k.cfg.Zones = zones.NewRegions(func(context.Context) (map[string][]string, error) {
			if tt.regions == nil {
				return nil, zones.ErrRejected
			}
			return tt.regions, nil
		}, slog.New(slog.DiscardHandler))
		want := own("")
		want.Zones, want.Prefix = tt.named, tt.prefix
		req := requestOf(want)
		k.BeginRound(t.Context(), kubernetes, []*Request{req}).WriteRequired(t.Context())
		if tt.wantText != "" {
			if req.Err == nil || !strings.Contains(req.Err.Error(), tt.wantText) || len(azure.said) > 0 {
				t.Errorf("%s: %v, %q", about, req.Err, azure.said)
			}
			continue
		}
		if got := azure.ips[named("c-a1").Key()]; req.Err != nil || strings.Join(got.Zones, " ") != tt.want {
			t.Errorf("%s: %v, %v", about, got.Zones, req.Err)
		}
	}
}

// An existing public IP keeps its zones and is not written for them. A Service that requests other ones is refused; one
// that names its public IP is not.
func TestZonesOfAnExistingPublicIP(t *testing.T) {
	for about, tt := range map[string]struct {
		has, named []string
		want       service.PublicIP
		wantText   string
	}{
		"none, none named":         {nil, nil, own(""), ""},
		"one, none named":          {[]string{"1"}, nil, own(""), ""},
		"the named one":            {[]string{"2"}, []string{"2"}, own(""), ""},
		"all, two named":           {[]string{"1", "2", "3"}, []string{"1", "2"}, own(""), ""},
		"another one":              {[]string{"1"}, []string{"2"}, own(""), "public IP c-a1 has zone 1, and annotation weir.dev/zones requests zone 2. Azure cannot change that"},
		"none":                     {nil, []string{"2"}, own(""), "public IP c-a1 has no zones, and"},
		"another, named by a user": {[]string{"1"}, []string{"2"}, brought("c-a1", ""), ""},
	} {
		ip := exists("c-a1", "shop/web", "20.0.0.7")
		ip.Zones = tt.has
		k, azure := keeperOf(ip)
		reads := 0
		k.cfg.Zones = zones.NewRegions(func(context.Context) (map[string][]string, error) { reads++; return nil, nil }, slog.New(slog.DiscardHandler))
		tt.want.Zones = tt.named
		req := requestOf(tt.want)
		k.BeginRound(t.Context(), kubernetes, []*Request{req}).WriteRequired(t.Context())
		if len(azure.said) > 0 || reads > 0 || !slices.Equal(azure.ips[ip.ID.Key()].Zones, tt.has) {
			t.Errorf("%s: %q, %d reads", about, azure.said, reads)
		}
		if (req.Err == nil) != (tt.wantText == "") || req.Err != nil && !strings.Contains(req.Err.Error(), tt.wantText) {
			t.Errorf("%s: %v", about, req.Err)
		}
	}
}
