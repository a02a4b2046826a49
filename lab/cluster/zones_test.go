// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

var threeZones = []string{"1", "2", "3"}

func internalIn(zones string) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
		setAnnotation(svc, service.Zones, zones)
	}
}

func publicIn(zones string) func(*corev1.Service) {
	return func(svc *corev1.Service) { setAnnotation(svc, service.Zones, zones) }
}

// zonesOf returns the zones of each Service in Azure: those of its public IP, or of its private frontend.
func (s *Stage) zonesOf() map[string]string {
	var resources []struct {
		ID   string `json:"id"`
		Body struct {
			Zones      []string          `json:"zones"`
			Tags       map[string]string `json:"tags"`
			Properties struct {
				Frontends []struct {
					Name       string   `json:"name"`
					Zones      []string `json:"zones"`
					Properties struct {
						Subnet *struct{} `json:"subnet"`
					} `json:"properties"`
				} `json:"frontendIPConfigurations"`
			} `json:"properties"`
		} `json:"body"`
	}
	failOn(json.Unmarshal(s.emulator.Snapshot(), &resources))
	zones := map[string]string{}
	for _, r := range resources {
		if key := r.Body.Tags[service.TagService]; key != "" && strings.Contains(r.ID, "/publicIPAddresses/") {
			zones[key] = strings.Join(r.Body.Zones, ",")
		}
		for _, f := range r.Body.Properties.Frontends {
			owner, _, _ := strings.Cut(f.Name, "-")
			if f.Properties.Subnet != nil && s.serviceOwners[owner] != "" {
				zones[s.serviceOwners[owner]] = strings.Join(f.Zones, ",")
			}
		}
	}
	return zones
}

func (s *Stage) expectZones(want map[string]string) {
	if got := s.zonesOf(); !maps.Equal(got, want) {
		failOn(fmt.Errorf("zones %v, want %v", got, want))
	}
}

func (s *Stage) locationReads() []armemu.Call {
	return s.emulator.Calls(func(c armemu.Call) bool { return strings.HasSuffix(c.Path, "/locations") })
}

// New public IPs and private frontends are in all zones of the region, which are read once, or in those that azure.json or
// the Service names. What exists keeps its zones: it is not written, and a Service that requests others is refused.
func TestNewAddressesAreInZones(t *testing.T) {
	runStage(t, Options{Zones: threeZones, Role: shipped.AzureRole()}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(errors.Join(s.AddService("shop/web", nil), s.AddService("shop/db", internalIn("")), s.AddService("blog/web", publicIn("2")), s.AddService("blog/db", internalIn("3"))))
		failOn(s.WaitInSync(3 * time.Minute))
		want := map[string]string{"shop/web": "1,2,3", "shop/db": "1,2,3", "blog/web": "2", "blog/db": "3"}
		s.expectZones(want)
		if reads := s.locationReads(); len(reads) != 1 {
			failOn(fmt.Errorf("the zones were read %d times", len(reads)))
		}
		failOn(s.Configure(func(c *config.Config) { c.AvailabilityZones = []string{"2"} }))
		s.Sleep(time.Minute)
		failOn(s.CheckIdleHour(400))
		failOn(errors.Join(s.AddService("shop/api", nil), s.AddService("shop/cache", internalIn(""))))
		failOn(s.WaitInSync(3 * time.Minute))
		want["shop/api"], want["shop/cache"] = "2", "2"
		s.expectZones(want)
		before := len(s.azureWrites())
		failOn(errors.Join(s.ChangeService("shop/web", publicIn("1")), s.ChangeService("blog/db", internalIn("1")), s.AddService("blog/api", publicIn("4")), s.AddService("blog/cache", internalIn("4")), s.AddService("blog/queue", internalIn("x"))))
		s.Sleep(time.Minute)
		s.expectZones(want)
		if writes := s.azureWrites(); len(writes) != before {
			failOn(fmt.Errorf("a refused Service wrote %q", writes[before:]))
		}
		s.refused("shop/web", "has zones 1, 2, 3, and annotation weir.dev/zones requests zone 1. Azure cannot change that")
		s.refused("blog/db", "has zone 3, and annotation weir.dev/zones requests zone 1. Azure cannot change that")
		s.refused("blog/api", "annotation weir.dev/zones names zone 4, and region eastus has zones 1, 2, 3: correct it")
		s.refused("blog/cache", "annotation weir.dev/zones names zone 4, and region eastus has zones 1, 2, 3: correct it")
		s.refused("blog/queue", `weir.dev/zones is "x": want different zones`)
		for _, key := range []string{"shop/web", "blog/db", "blog/api", "blog/cache", "blog/queue"} {
			failOn(s.ChangeService(key, publicIn("")))
		}
		failOn(s.WaitInSync(30 * time.Minute))
		want["blog/api"], want["blog/cache"], want["blog/queue"] = "2", "2", "2"
		s.expectZones(want)
	})
}

// Where the region has no zones, azure.json wants none, or zones cannot be read, none are sent, and nothing fails. Those
// that azure.json names are sent although the zones of the region are not known.
func TestNewAddressesWithoutZones(t *testing.T) {
	for about, tt := range map[string]struct {
		opts  Options
		fault string
		zones string
		logs  int
	}{
		"a region without zones":         {opts: Options{Zones: []string{}}},
		"azure.json wants none":          {opts: Options{Zones: threeZones, Configure: func(c *config.Config) { c.AvailabilityZones = []string{} }}},
		"the permission is missing":      {opts: Options{Zones: threeZones, Role: &armemu.Role{Actions: []string{"*"}, NotActions: []string{"Microsoft.Resources/subscriptions/locations/read"}}}, logs: 1},
		"named, with none of them known": {opts: Options{Zones: threeZones, Configure: func(c *config.Config) { c.AvailabilityZones = []string{"2"} }, Role: &armemu.Role{Actions: []string{"*"}, NotActions: []string{"Microsoft.Resources/subscriptions/locations/read"}}}, zones: "2"},
		"Azure fails":                    {opts: Options{Zones: threeZones}, fault: `{match: {method: GET, path: "/subscriptions/*/locations"}, action: {status: 500, code: InternalServerError}}`, logs: 1},
	} {
		t.Run(about, func(t *testing.T) {
			runStage(t, tt.opts, func(s *Stage) {
				failOn(s.AddNode(0))
				if tt.fault != "" {
					failOn(s.AzureFaults(tt.fault))
				}
				s.Start()
				failOn(errors.Join(s.AddService("shop/web", nil), s.AddService("shop/db", internalIn(""))))
				failOn(s.WaitInSync(4 * time.Minute))
				failOn(s.AddService("blog/web", nil))
				failOn(s.WaitInSync(4 * time.Minute))
				s.expectZones(map[string]string{"shop/web": tt.zones, "shop/db": tt.zones, "blog/web": tt.zones})
				if n := strings.Count(s.Log(), "the availability zones of the region are not known"); n != tt.logs {
					failOn(fmt.Errorf("%d lines say that zones are not known, want %d", n, tt.logs))
				}
			})
		})
	}
}

// A migration gives zones to private frontends, which are new; public IPs keep their address and have none.
func TestZonesOfWhatWasBasic(t *testing.T) {
	runStage(t, Options{Zones: threeZones, Role: shipped.MigrationRoles(), Configure: enableMigration}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		failOn(s.addBasic(0, 1, 2))
		failOn(errors.Join(s.ChangeService("blog/db", internalIn("2")), s.ChangeService("shop/queue", internalIn("7"))))
		s.Start()
		want := map[string]string{"shop/web": "", "shop/api": "", "blog/web": "", "shop/db": "1,2,3", "blog/db": "2", "shop/queue": "1,2,3", "blog/queue": "1,2,3", "blog/cache": "1,2,3"}
		for end := time.Now().Add(20 * time.Minute); !maps.Equal(s.zonesOf(), want) && time.Now().Before(end); {
			s.Sleep(10 * time.Second)
		}
		s.expectZones(want)
		failOn(s.ChangeService("shop/queue", internalIn("")))
		failOn(s.WaitInSync(40 * time.Minute))
		failOn(s.checkMigrated())
		s.expectZones(want)
		if !slices.ContainsFunc(s.locationReads(), func(c armemu.Call) bool { return c.Status == 200 }) {
			failOn(errors.New("the zones were not read"))
		}
	})
}
