// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/zones"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
	"weir.dev/weir/test/shipped"
)

const (
	subscription = "00000000-0000-0000-0000-000000000001"
	resources    = "rg"
	clusterName  = "kubernetes"
	inGroup      = "/subscriptions/" + subscription + "/resourceGroups/" + resources
	// network is the prefix of IDs that scripts write as ~/….
	network = inGroup + "/providers/Microsoft.Network"
	vnetID  = network + "/virtualNetworks/net"
)

const vnetBody = `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/48"]},"subnets":[
	{"name":"nodes","properties":{"addressPrefixes":["10.0.0.0/16","fd00::/64"]}},
	{"name":"apps","properties":{"addressPrefixes":["10.1.0.0/16","fd00:0:0:1::/64"]}},
	{"name":"links","properties":{"addressPrefixes":["10.2.0.0/16"],"privateLinkServiceNetworkPolicies":"Disabled"}}]}}`

// stage is an emulated Azure, the Kubernetes records and one process, in virtual time. It belongs to one bubble
// and one goroutine.
type stage struct {
	emu      *armemu.Emulator
	settings loadbalancer.Settings
	start    time.Time
	lease    *lease // nil means none
	nodes    []netip.Addr
	zones    *zones.Regions // nil knows none
	// placed are the nodes of every load balancer; nil for all.
	placed []netip.Addr
	// backends are the BackendPools by name; nil disables them.
	backends map[string]*backendPool
	draining map[string]bool // nodes
	theirs   map[string]bool // foreign members, by pool and address
	filled   map[string]bool // pools of interfaces that still have a BackendPool
	// otherKind are pools in which a BackendPool has the other kind of members.
	otherKind map[string]bool
	witness   witness
	// strangers are repeated foreign changes.
	strangers [][]datadriven.CmdArg
	knows     behavior.Behavior // Azure's behavior as known to Weir
	log       *slog.Logger
	wrap      func(loadbalancer.Azure) loadbalancer.Azure // nil leaves Azure as it is
	spares    bool                                        // every request protects addresses
	owners    *ownerStore
	// reservations of private addresses.
	reservations *reservationStore
	// left are the recorded left pools.
	left *poolStore
	// groups are the recorded resource groups of public IPs.
	groups *groupStore

	mu       sync.Mutex // guards the fields below; never held while time passes
	services map[string]*record
	// unbounded removes the limits of all Namespaces.
	unbounded bool
	bounds    map[string]map[string]string // Namespace annotations
	grants    map[string]string            // for public IPs, by namespace
	uids      int
	process   *process
	lines     []line
	logged    uint64 // the last traced call
	// sent counts requests; kill is the request that kills the process.
	sent int
	kill killPoint
	// took is the time from acted until each Service was in sync.
	acted time.Time
	took  map[string]time.Duration
}

// killPoint is a request: the process is killed before it is sent, or before its response arrives. The zero
// value means none.
type killPoint struct {
	nth   int
	after bool
}

type line struct {
	at   time.Time
	text string
}

// newStage returns a stage with a running process and no Services.
func newStage(adjust ...func(*loadbalancer.Settings)) *stage { return newStageOn(nil, adjust...) }

// newStageOn returns a stage with an Azure that another stage has, too; nil for an Azure of its own.
func newStageOn(emu *armemu.Emulator, adjust ...func(*loadbalancer.Settings)) *stage {
	s := &stage{
		start:    time.Now(),
		log:      quiet,
		services: map[string]*record{},
		grants:   map[string]string{},
		owners:   &ownerStore{}, reservations: &reservationStore{}, left: &poolStore{}, groups: &groupStore{},
		nodes: []netip.Addr{netip.MustParseAddr("10.0.9.1"), netip.MustParseAddr("10.0.9.2"), netip.MustParseAddr("fd00::9:1")},
		settings: loadbalancer.Settings{
			Settings: service.Settings{
				SeveralLoadBalancers: true, // Local Services have pools of their own
				ClusterName:          clusterName,
				PublicIPs:            lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources},
				VirtualNetwork:       vnetID, Subnet: "nodes",
			},
			Place:          lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: resources},
			Location:       "eastus",
			Configurations: []service.Configuration{{Name: clusterName}},
			MaxRules:       1500,
		},
	}
	for _, a := range adjust {
		a(&s.settings)
	}
	role := shipped.AzureRole()
	if s.links() {
		role = shipped.AzureRoles()
	}
	if s.emu = emu; emu == nil {
		s.emu = armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, LatencyFixed: true, Role: role, MaxPrivateLinks: s.settings.MaxPrivateLinks})
		if err := s.emu.Put(vnetID, []byte(vnetBody)); err != nil {
			panic(err)
		}
	}
	s.launch()
	return s
}

// links reports whether Private Link Services are enabled.
func (s *stage) links() bool { return s.settings.PrivateLinks.ResourceGroup != "" }

// close ends the process and checks that no request was sent before a Retry-After.
func (s *stage) close() {
	s.stop()
	must(patient.CheckRequests(s.emu))
}

// restart starts a new process from the Kubernetes records.
func (s *stage) restart() {
	s.stop()
	s.launch()
	s.process.lookAtPools()
	s.kickAll()
}

func (s *stage) stop() {
	s.mu.Lock()
	p := s.process
	p.die()
	s.mu.Unlock()
	p.running.Wait()
}

func (s *stage) kickAll() {
	for _, name := range s.names() {
		s.process.kick(name)
	}
}

// names returns all Services in order of creation.
func (s *stage) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.services {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return s.services[a].rank - s.services[b].rank })
	return names
}

// settle advances time until nothing runs or waits, at most that long. It reports whether all is idle.
func (s *stage) settle(limit time.Duration) bool {
	for end := time.Now().Add(limit); ; {
		synctest.Wait()
		if s.idle() {
			return true
		}
		remaining := time.Until(end)
		if remaining <= 0 {
			return false
		}
		time.Sleep(min(remaining, 50*time.Millisecond))
	}
}

func (s *stage) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.dead {
		return true
	}
	for _, cl := range s.process.claims {
		if cl.busy || cl.running || cl.sleeps > 0 {
			return false
		}
	}
	return s.process.missing == 0 && (s.backends == nil || s.process.lanes.Backlog().OldestQueuedAt.IsZero())
}

// trace adds a line. The caller holds s.mu.
func (s *stage) trace(format string, args ...any) {
	s.lines = append(s.lines, line{time.Now(), fmt.Sprintf(format, args...)})
}

// harvest returns the lines since the last call, with Azure's writes and errors, and optionally reads.
func (s *stage) harvest(reads bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	for _, c := range s.emu.Calls(func(c armemu.Call) bool { return c.Seq > s.logged }) {
		s.logged = c.Seq
		read := c.Kind == armemu.KindGet || c.Kind == armemu.KindList || c.Kind == armemu.KindPoll
		if read && c.Status == http.StatusOK && (!reads || c.Kind == armemu.KindPoll) {
			continue
		}
		lines = append(lines, line{c.Time, spellCall(c)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "%8.1fs %s\n", l.at.Sub(s.start).Seconds(), l.text)
	}
	return out.String()
}

func spellCall(c armemu.Call) string {
	status := fmt.Sprint(c.Status)
	if c.Dropped {
		status = "answer lost"
	}
	name := short(c.Resource)
	if name == "" {
		name = "all " + isLastLeaving(c.Path)
	}
	if c.Kind == armemu.KindPoll {
		name = "poll of " + name
	}
	return strings.TrimRight(fmt.Sprintf("%s %s %s %s", c.Method, name, status, c.ErrorCode), " ")
}

// short removes the common prefix of an ARM ID.
func short(id string) string {
	for _, prefix := range []string{network + "/", inGroup + "/providers/", "/subscriptions/" + subscription + "/resourceGroups/"} {
		if len(id) > len(prefix) && strings.EqualFold(id[:len(prefix)], prefix) {
			return strings.Replace(id[len(prefix):], "/providers/Microsoft.Network/", "/", 1)
		}
	}
	return id
}

// distance is the one-way latency of a request. Latencies differ, so that the order of arrival does not depend
// on the scheduler.
func distance(path string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	return 10*time.Millisecond + time.Duration(h.Sum32()%999_983)*time.Nanosecond
}

func spellAddresses(list []netip.Addr) string {
	var texts []string
	for _, ip := range list {
		texts = append(texts, ip.String())
	}
	return strings.Join(texts, " ")
}

var quiet = slog.New(slog.DiscardHandler)
