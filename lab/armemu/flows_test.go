// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

// flowScenario is a rule with three addresses, n1 to n3, and a probe every 5 s with threshold 2.
type flowScenario struct {
	*testing.T
	emu   *armemu.Emulator
	start time.Time
}

const twoProbes = `"intervalInSeconds":5,"probeThreshold":2`

func newFlowScenario(t *testing.T, probe string, opts armemu.Options) *flowScenario {
	opts.LatencyFixed = true
	emu := newCloud(t, opts)
	body := strings.Replace(lbBody(`{"name":"web"}`), `{"name":"p"}`, `{"name":"p","properties":{`+probe+`}}`, 1)
	if probe == "" {
		body = strings.Replace(body, `"probe":{"id":"`+lbID+`/probes/p"},`, "", 1)
	}
	putResource(t, emu, lbID, body)
	s := &flowScenario{t, emu, time.Now()}
	s.writePool("n1", "n2", "n3")
	return s
}

// writePool writes the pool; an entry is a node or node=adminState.
func (s *flowScenario) writePool(entries ...string) {
	s.Helper()
	list := make([]string, len(entries))
	for i, entry := range entries {
		name, state, _ := strings.Cut(entry, "=")
		list[i] = fmt.Sprintf(`{"name":%q,"properties":{"ipAddress":%q}}`, name, nodeIP(name))
		if state != "" {
			list[i] = strings.Replace(list[i], `"ipAddress"`, `"adminState":"`+state+`","ipAddress"`, 1)
		}
	}
	if a := sendRequest(s, s.emu, http.MethodPut, poolID, poolWith(inVNet, list...)); a.status >= 300 {
		s.Fatal(a.raw)
	}
}

func nodeIP(name string) string { return "10.0.0." + strings.TrimPrefix(name, "n") }

func (s *flowScenario) killNodes(names ...string)    { s.setAlive(false, names) }
func (s *flowScenario) recoverNodes(names ...string) { s.setAlive(true, names) }

func (s *flowScenario) setAlive(alive bool, names []string) {
	for _, n := range names {
		s.emu.SetAlive(netip.MustParseAddr(nodeIP(n)), alive)
	}
}

// waitUntil waits until this time after the start.
func (s *flowScenario) waitUntil(seconds float64) {
	time.Sleep(time.Until(s.start.Add(time.Duration(seconds * float64(time.Second)))))
}

func (s *flowScenario) expectFlows(takers string, misdirected, unserved float64) {
	s.Helper()
	s.expectFlowsBetween(time.Time{}, time.Now(), takers, misdirected, unserved)
}

func (s *flowScenario) expectFlowsBetween(from, to time.Time, takers string, misdirected, unserved float64) {
	s.Helper()
	flows := s.emu.Flows(from, to)
	if len(flows) != 1 {
		s.Fatalf("%d rules: %+v", len(flows), flows)
	}
	var got []string
	for _, a := range flows[0].Addresses {
		if a.TakesNewFlows {
			got = append(got, a.Name)
		}
	}
	equal := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if strings.Join(got, " ") != takers || !equal(flows[0].MisdirectedSeconds, misdirected) || !equal(flows[0].UnservedSeconds, unserved) {
		s.Errorf("after %v: %v take new flows, misdirected %.4f s, unserved %.4f s; want %s, %.4f, %.4f",
			to.Sub(s.start), got, flows[0].MisdirectedSeconds, flows[0].UnservedSeconds, takers, misdirected, unserved)
	}
}

func TestNewFlows(t *testing.T) {
	for name, explanation := range flowScenarios {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { explanation(newFlowScenario(t, twoProbes, armemu.Options{})) })
		})
	}
}

const oneThird = 1.0 / 3

// Times are in seconds.
var flowScenarios = map[string]func(*flowScenario){
	"a dead node takes new flows until its second failed probe": func(s *flowScenario) {
		s.killNodes("n2")
		s.waitUntil(9.999)
		s.expectFlows("n1 n2 n3", 9.999*oneThird, 0)
		s.waitUntil(10)
		s.expectFlows("n1 n3", 10*oneThird, 0)
		s.waitUntil(600)
		s.expectFlows("n1 n3", 10*oneThird, 0)
	},
	"a node that recovers waits for two good probes": func(s *flowScenario) {
		s.killNodes("n2")
		s.waitUntil(30)
		s.recoverNodes("n2")
		s.waitUntil(39.999)
		s.expectFlows("n1 n3", 10*oneThird, 0)
		s.waitUntil(40)
		s.expectFlows("n1 n2 n3", 10*oneThird, 0)
	},
	"what is shorter than two probes goes unnoticed": func(s *flowScenario) {
		for i := range 4 {
			s.waitUntil(float64(i) * 12)
			s.killNodes("n2")
			s.waitUntil(float64(i)*12 + 6)
			s.recoverNodes("n2")
		}
		s.waitUntil(60)
		s.expectFlows("n1 n2 n3", 4*6*oneThird, 0)
	},
	"a node that flaps back too shortly stays out": func(s *flowScenario) {
		s.killNodes("n2")
		s.waitUntil(20)
		s.recoverNodes("n2")
		s.waitUntil(28)
		s.killNodes("n2")
		s.waitUntil(60)
		s.expectFlows("n1 n3", 10*oneThird, 0)
	},
	"the same news twice is no news": func(s *flowScenario) {
		s.recoverNodes("n1")
		s.killNodes("n2")
		s.waitUntil(8)
		s.killNodes("n2")
		s.waitUntil(10)
		s.expectFlows("n1 n3", 10*oneThird, 0)
	},
	"admin state Down ends it when it is written": func(s *flowScenario) {
		s.killNodes("n2")
		s.waitUntil(3)
		s.writePool("n1", "n2=Down", "n3")
		s.expectFlows("n1 n3", 3*oneThird, 0)
		s.waitUntil(60)
		s.expectFlows("n1 n3", 3*oneThird, 0)
		s.writePool("n1", "n2=None", "n3") // the probe kept running
		s.expectFlows("n1 n3", 3*oneThird, 0)
	},
	"admin state Down takes a living node out as well": func(s *flowScenario) {
		s.writePool("n1=Down", "n2", "n3")
		s.killNodes("n2")
		s.waitUntil(10)
		s.expectFlows("n3", 10*0.5, 0)
	},
	"admin state Up overrides the probe": func(s *flowScenario) {
		s.writePool("n1", "n2=Up", "n3")
		s.killNodes("n2")
		s.waitUntil(60)
		s.expectFlows("n1 n2 n3", 60*oneThird, 0)
	},
	"a node that leaves the pool takes nothing": func(s *flowScenario) {
		s.killNodes("n2")
		s.waitUntil(4)
		s.writePool("n1", "n3")
		s.waitUntil(60)
		s.expectFlows("n1 n3", 4*oneThird, 0)
		s.writePool("n1", "n2", "n3") // dead for a while
		s.expectFlows("n1 n3", 4*oneThird, 0)
	},
	"with nobody left nobody takes new flows": func(s *flowScenario) {
		s.killNodes("n1", "n2", "n3")
		s.waitUntil(25)
		s.expectFlows("", 10, 15)
		s.recoverNodes("n1")
		s.waitUntil(35)
		s.expectFlows("n1", 10, 25)
	},
	"what was before the first death is not kept": func(s *flowScenario) {
		s.writePool("n1=Down", "n2=Down", "n3=Down")
		s.recoverNodes("n1")
		s.waitUntil(5)
		s.killNodes("n1")
		s.waitUntil(8)
		s.expectFlows("", 0, 3)
	},
	"another load balancer is another account": func(s *flowScenario) {
		s.killNodes("n2")
		putResource(s, s.emu, otherLB, lb("Standard", ""))
		s.waitUntil(60)
		s.expectFlows("n1 n3", 10*oneThird, 0)
	},
	"a stretch of time": func(s *flowScenario) {
		s.killNodes("n2")
		s.waitUntil(60)
		s.expectFlowsBetween(s.start.Add(4*time.Second), s.start.Add(7*time.Second), "n1 n2 n3", 3*oneThird, 0)
		s.expectFlowsBetween(s.start.Add(7*time.Second), s.start.Add(time.Hour), "n1 n3", 3*oneThird, 0)
	},
	"all is forgotten": func(s *flowScenario) {
		s.killNodes("n2")
		s.waitUntil(60)
		s.emu.ResetFlows()
		s.expectFlows("n1 n2 n3", 0, 0)
	},
}

// A changed probe reevaluates the whole history.
func TestNewFlowsWhenTheProbeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFlowScenario(t, twoProbes, armemu.Options{})
		s.killNodes("n2")
		s.waitUntil(12)
		raw, _ := s.emu.Get(lbID)
		putResource(t, s.emu, lbID, strings.Replace(string(raw), `"intervalInSeconds":5`, `"intervalInSeconds":20`, 1))
		s.waitUntil(60)
		s.expectFlows("n1 n3", (10.0+40-12)/3, 0)
	})
}

func TestNewFlowsByProbe(t *testing.T) {
	for name, c := range map[string]struct {
		probe                 string
		states                [3]string
		dead, takers          string
		misdirected, unserved float64 // in 60 s
	}{
		"slower":                                {`"intervalInSeconds":20,"probeThreshold":2`, [3]string{}, "n2", "n1 n3", 40.0 / 3, 0},
		"at the first failure":                  {`"intervalInSeconds":5,"probeThreshold":1`, [3]string{}, "n2", "n1 n3", 5.0 / 3, 0},
		"with Azure's defaults":                 {`"port":80`, [3]string{}, "n2", "n1 n3", 15.0 / 3, 0},
		"numberOfProbes counts for nothing":     {`"intervalInSeconds":5,"numberOfProbes":3`, [3]string{}, "n2", "n1 n3", 5.0 / 3, 0},
		"beyond all bounds":                     {`"intervalInSeconds":2147483647,"probeThreshold":2147483647`, [3]string{}, "n2", "n1 n2 n3", 60.0 / 3, 0},
		"none":                                  {"", [3]string{}, "n2", "n1 n2 n3", 60.0 / 3, 0},
		"without one admin state has no effect": {"", [3]string{1: "Down"}, "n2", "n1 n2 n3", 60.0 / 3, 0},
		"all down":                              {twoProbes + `,"noHealthyBackendsBehavior":"AllProbedDown"`, [3]string{}, "n1 n2 n3", "", 10, 50},
		"all down is all up, if it is to be":    {twoProbes + `,"noHealthyBackendsBehavior":"AllProbedUp"`, [3]string{}, "n1 n2 n3", "n1 n2 n3", 60, 0},
		"one up is enough for that not to be":   {twoProbes + `,"noHealthyBackendsBehavior":"AllProbedUp"`, [3]string{}, "n1 n2", "n3", 20.0 / 3, 0},
		"admin state Down stays down whatever":  {twoProbes + `,"noHealthyBackendsBehavior":"AllProbedUp"`, [3]string{"Down"}, "n2 n3", "n2 n3", 60, 0},
		"all in admin state Down":               {twoProbes, [3]string{"Down", "Down", "Down"}, "n2", "", 0, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFlowScenario(t, c.probe, armemu.Options{})
				entries := make([]string, 3)
				for i, state := range c.states {
					entries[i] = fmt.Sprintf("n%d=%s", i+1, state)
				}
				s.writePool(entries...)
				s.killNodes(strings.Fields(c.dead)...)
				s.waitUntil(60)
				s.expectFlows(c.takers, c.misdirected, c.unserved)
			})
		})
	}
}

// The write is reverted when its operation ends, not when read: Down takes effect at 6 s.
func TestNewFlowsFollowAFailedWriteBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFlowScenario(t, twoProbes, armemu.Options{LatencyScale: 1})
		s.waitUntil(20)
		setFaults(t, s.emu, `rules: [{match: {method: PUT}, action: {operation: {fail: {code: InternalServerError}}}}]`)
		s.killNodes("n2")
		s.writePool("n1", "n2=Down", "n3")
		s.waitUntil(60)
		s.expectFlows("n1 n3", 8.5/3, 0)
	})
}

func TestNewFlowsOfARuleThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFlowScenario(t, twoProbes, armemu.Options{Behavior: worlds.BatchedWrites()})
		s.killNodes("n2")
		s.waitUntil(6)
		before := s.emu.Snapshot()
		body := strings.Replace(lbBody(`{"name":"web"}`), `"loadBalancingRules"`, `"ignored"`, 1)
		if a := sendRequest(t, s.emu, http.MethodPut, lbID, body); a.status >= 300 {
			t.Fatal(a.raw)
		}
		s.waitUntil(7)
		s.expectFlows("", 6.0/3, 0)
		if flows := s.emu.Flows(time.Now(), time.Now()); len(flows) != 0 {
			t.Errorf("a rule that is gone is there: %+v", flows)
		}
		if err := s.emu.Restore(before); err != nil {
			t.Fatal(err)
		}
		s.waitUntil(8)
		s.expectFlows("n1 n2 n3", 7.0/3, 0)
		if err := s.emu.Restore([]byte(`[]`)); err != nil {
			t.Fatal(err)
		}
		s.waitUntil(60)
		s.expectFlows("", 7.0/3, 0)
	})
}

// A seed may reference anything as a pool.
func TestNewFlowsOfARuleWithoutAPool(t *testing.T) {
	for _, pool := range []string{lbID, vnetID, lbID + "/backendAddressPools/none", "x", ""} {
		emu := newCloud(t, armemu.Options{})
		putResource(t, emu, lbID, strings.ReplaceAll(lbBody(`{"name":"web"}`), poolID, pool))
		if flows := emu.Flows(time.Time{}, time.Now()); len(flows) != 1 || len(flows[0].Addresses) != 0 {
			t.Errorf("%q: %+v", pool, flows)
		}
	}
}

func TestAdminProbe(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	sendRequest(t, emu, http.MethodPut, poolID, strings.Replace(poolBody("10.0.0.1", "10.0.0.2"), `"ipAddress":"10.0.0.1"`, `"adminState":"Down","ipAddress":"10.0.0.1"`, 1))
	for _, step := range []struct {
		method, body string
		code         int
		contains     string
	}{
		{http.MethodGet, "", 200, `"alive":true,"probedUp":true,"takesNewFlows":false`},
		{http.MethodPost, `{"ip":"10.0.0.2","alive":false}`, 204, ""},
		{http.MethodGet, "", 200, `"name":"n-10.0.0.2","ip":"10.0.0.2","adminState":"None","alive":false,"probedUp":true,"takesNewFlows":true`},
		{http.MethodPost, `{"ip":"::ffff:10.0.0.2","alive":true}`, 204, ""},
		{http.MethodGet, "", 200, `"ip":"10.0.0.2","adminState":"None","alive":true`},
		{http.MethodPost, `{"ip":"n1","alive":true}`, 400, "not an IP address"},
		{http.MethodPost, `{"ip":"fe80::1%eth0","alive":true}`, 400, "not an IP address"},
		{http.MethodPost, `{"ip":"10.0.0.2"}`, 400, "true or false"},
		{http.MethodPost, `{"ip":"10.0.0.2","dead":true}`, 400, "allowed here: ip, alive"},
		{http.MethodDelete, "", 204, ""},
		{http.MethodPut, "{}", 405, ""},
	} {
		w := sendAdmin(emu, step.method, "/_emu/probe", step.body)
		if w.Code != step.code || !strings.Contains(w.Body.String(), step.contains) {
			t.Errorf("%s %s: %d %s, want %s", step.method, step.body, w.Code, w.Body, step.contains)
		}
	}
	var report struct{ Rules []armemu.RuleFlows }
	if err := json.Unmarshal(sendAdmin(emu, http.MethodGet, "/_emu/probe", "").Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	r := report.Rules[0]
	if r.Rule != lbID+"/loadBalancingRules/r" || r.Frontend != lbID+"/frontendIPConfigurations/fe" || r.Probe != lbID+"/probes/p" || r.Addresses[0].Pool != "web" {
		t.Errorf("%+v", r)
	}
}
