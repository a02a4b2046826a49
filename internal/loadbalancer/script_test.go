// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScripts plays every script in virtual time. -rewrite updates the expected output.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(raw), "# ") {
			t.Errorf("%s does not begin with a sentence that says what it shows", path)
		}
		trace, _ := playScript(t, string(raw))
		if t.Failed() {
			return
		}
		next := 0
		datadriven.RunTest(t, path, func(*testing.T, *datadriven.TestData) string {
			next++
			return trace[next-1]
		})
	})
}

// playScript plays a script and returns the trace of each step and all Azure calls.
func playScript(t *testing.T, script string, adjust ...func(*loadbalancer.Settings)) (trace, calls []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var s *stage
		defer func() { s.close() }()
		requested := uint64(0)
		datadriven.RunTestFromString(t, strings.ReplaceAll(script, "\t", "  "), func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "stage" {
				if s != nil {
					s.close()
				}
				s, requested = stageOf(d, adjust...), 0
				trace = append(trace, "")
				return d.Expected
			}
			output := s.do(d)
			if err := s.check(); err != nil {
				t.Errorf("%s: %v", d.Pos, err)
			}
			if s.backends != nil && s.settle(0) {
				if err := s.owned(); err != nil {
					t.Errorf("%s: %v", d.Pos, err)
				}
			}
			trace = append(trace, output)
			for _, c := range s.emu.Calls(func(c armemu.Call) bool { return c.Seq > requested }) {
				requested = c.Seq
				calls = append(calls, fmt.Sprintf("%s: %.1fs %s", d.Pos, c.Time.Sub(s.start).Seconds(), spellCall(c)))
			}
			return d.Expected // compared by the caller, outside the bubble
		})
	})
	return trace, calls
}

// arranges executes a setup step; false if it is another kind.
func (s *stage) arranges(d *datadriven.TestData) bool {
	switch d.Cmd {
	case "put":
		s.put(d.CmdArgs[0].Key, d.Input)
	case "drop":
		s.drop(d.CmdArgs[0].Key)
	case "add":
		s.add(d.CmdArgs[0].Key, d.Input)
	case "take":
		s.take(d.CmdArgs[0].Key, d.CmdArgs[1].Key, d.CmdArgs[2].Key)
	case "fault":
		must(s.emu.SetFaults(strings.ReplaceAll(d.Input, "~", network)))
	case "overlap":
		must(s.emu.SetBehavior(behavior.Behavior{Overlap: behavior.Result(d.CmdArgs[0].Key)}))
	case "lease":
		s.lease.set(d.CmdArgs[0].Key)
	case "owners":
		s.owners.set(d.CmdArgs[0].Key)
		s.reservations.set(d.CmdArgs[0].Key)
		s.left.set(d.CmdArgs[0].Key)
		s.groups.set(d.CmdArgs[0].Key)
	case "grant":
		s.mu.Lock()
		s.grants[d.CmdArgs[0].Key] = strings.TrimSpace(d.Input)
		s.mu.Unlock()
	case "mend":
		s.mend()
	case "stranger":
		s.strangers = append(s.strangers, d.CmdArgs)
	case "backendpool":
		s.mu.Lock()
		s.filled = map[string]bool{d.CmdArgs[0].Key: true}
		s.mu.Unlock()
	case "no-backendpools":
		s.mu.Lock()
		s.filled = nil
		s.mu.Unlock()
	case "connect":
		_, err := s.emu.Connect(network+"/privateLinkServices/"+d.CmdArgs[0].Key,
			"/subscriptions/"+d.CmdArgs[1].Key+"/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/"+d.CmdArgs[2].Key)
		must(err)
	case "machine":
		s.machine(d)
	case "no-strangers":
		s.strangers = nil
	case "join", "part":
		change := joins
		if d.Cmd == "part" {
			change = leaves
		}
		s.others(d.CmdArgs[0].Key, d.CmdArgs[1].Key, change)
	default:
		return false
	}
	return true
}

// do executes a step and returns its trace.
func (s *stage) do(d *datadriven.TestData) string {
	if s.arranges(d) {
		return ""
	}
	wait, before := 2*time.Minute, ""
	if text, ok := option(d, "for"); ok {
		wait, _ = time.ParseDuration(text)
	}
	switch d.Cmd {
	case "apply":
		s.applyAll(d.Input)
	case "delete":
		for _, a := range d.CmdArgs {
			if strings.Contains(a.Key, "/") {
				s.remove(a.Key)
			}
		}
	case "restart":
		s.restartAs(d)
	case "crowd":
		s.crowd(d)
		s.settle(wait)
		s.harvest(false)
		return s.standing()
	case "nodes":
		s.setNodes(d)
	case "look":
		s.look()
	case "delete-unneeded":
		s.deleteUnneeded()
	case "again":
		s.again(d.CmdArgs[0].Key)
	case "looks":
		before = s.looks(atoi(d.CmdArgs[0].Key), wait)
	case "wait":
	case "groups":
		return s.groups.spell()
	case "orphans":
		return s.orphans()
	case "left-pools":
		return s.left.spell()
	case "azure":
		return s.cloud().spell()
	case "writes":
		writes := s.emu.Stats().Writes
		output := s.spellWrites()
		if text, ok := option(d, "at-most"); ok && writes <= atoi(text) { // Services rejected together may differ
			return "at most " + text + "\n"
		}
		return output
	default:
		d.Fatalf(nil, "no verb %q", d.Cmd)
	}
	s.settle(wait)
	if d.HasArg("quiet") {
		s.harvest(false)
		return s.cloud().spell()
	}
	messages := before + s.harvest(d.HasArg("reads"))
	if messages == "" {
		messages = "nothing happens\n"
	}
	if d.HasArg("azure") {
		messages += s.cloud().spell()
	}
	return messages
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func option(d *datadriven.TestData, key string) (string, bool) {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) == 1 {
			return a.Vals[0], true
		}
	}
	return "", false
}

// stageOf parses the settings of a cluster.
func stageOf(d *datadriven.TestData, adjust ...func(*loadbalancer.Settings)) *stage {
	s := newStage(append(adjust, func(set *loadbalancer.Settings) {
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "nowhere":
				set.Location = ""
			case "no-network":
				set.VirtualNetwork = ""
			case "shared-probe":
				set.SharedProbe = service.SharedProbeOf(10256, "/healthz")
			case "no-snat":
				set.DisableOutboundSNAT = true
			case "most-rules":
				_, _ = fmt.Sscan(a.Vals[0], &set.MaxRules)
				set.RulesBy = "azure.json"
			case "most-links":
				set.MaxPrivateLinks = atoi(a.Vals[0])
			case "tags":
				set.Tags = map[string]string{a.Vals[0]: a.Vals[1]}
			case "guarded":
				set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
			case "links":
				linked(set)
				set.Interfaces, set.CanOpenSubnets = !slices.Contains(a.Vals, "addresses"), slices.Contains(a.Vals, "opens")
				set.PodSubnets = []string{"apps"}
			case "interfaces":
				set.Interfaces = true
			case "effective":
				set.RequireEffectiveRestrictions = true
			case "on":
				set.Configurations = nil
				for _, name := range a.Vals {
					set.Configurations = append(set.Configurations, configuration(name))
				}
			}
		}
	})...)
	s.spares, s.unbounded = d.HasArg("spares"), d.HasArg("unbounded")
	if namespace, ok := option(d, "grants"); ok {
		s.grants[namespace] = "*"
	}
	if d.HasArg("pools") {
		keepsPools(s)
	}
	if d.HasArg("lease") {
		s.stop()
		s.lease = &lease{}
		s.launch()
	}
	return s
}

// restartAs starts a new process with changed settings.
func (s *stage) restartAs(d *datadriven.TestData) {
	s.stop()
	if group, ok := option(d, "public-ips"); ok {
		s.settings.PublicIPs.ResourceGroup = group
	}
	if name, ok := option(d, "on"); ok {
		s.settings.Configurations = []service.Configuration{configuration(name)}
	}
	if d.HasArg("allowed") {
		s.spares = false
	}
	s.launch()
	s.process.lookAtPools()
	s.kickAll()
}

// setNodes sets the nodes and resyncs all Services.
func (s *stage) setNodes(d *datadriven.TestData) {
	s.mu.Lock()
	s.nodes = nil
	for _, a := range d.CmdArgs {
		if ip, err := netip.ParseAddr(a.Key); err == nil {
			s.nodes = append(s.nodes, ip)
		}
	}
	s.mu.Unlock()
	s.look()
}

// look resyncs all Services.
func (s *stage) look() {
	s.mu.Lock()
	for _, cl := range s.process.claims {
		cl.inSync = nil
	}
	s.mu.Unlock()
	s.kickAll()
}

// spellWrites counts the writes since the last call.
func (s *stage) spellWrites() string {
	counts := map[string]int{}
	for _, c := range s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)) {
		kind, _, _ := strings.Cut(short(c.Resource), "/")
		counts[c.Method+" "+kind]++
	}
	s.emu.ClearCalls()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&out, "%d %s\n", counts[name], name)
	}
	return out.String()
}
