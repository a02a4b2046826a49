// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAdminStatesDecideNewFlows(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	l.expectNodes("all", "n1 n2 n3")
	established := l.openTo("n2")
	l.putBalancer("n1", "n2=Down", "n3")
	l.expectNodes("n2 Down", "n1 n3")
	established.expectAlive("n2 Down")
	l.putBalancer("n1", "n3")
	l.expectNodes("n2 removed", "n1 n3")
	established.expectAlive("n2 removed")
	l.putBalancer("n1", "n2", "n3")
	l.probeRounds(2)
	l.expectNodes("n2 is back", "n1 n2 n3")
	if got := l.balancer.Takers(TCP, front); len(got) != 3 {
		t.Errorf("new flows go to %v", got)
	}
}

func TestAdminStatesActThroughTheProbe(t *testing.T) {
	l := newLab(t, "", BalancerOptions{})
	l.putBalancer("n1", "n2=Down", "n3")
	l.expectNodes("a rule without a probe", "n1 n2 n3")
}

// A member that joins gets new flows once its probe is up.
func TestAMemberThatJoinsIsProbedFirst(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	l.putBalancer("n1", "n2")
	l.probeRounds(1)
	l.putBalancer("n1", "n2", "n3")
	l.expectNodes("before its probe", "n1 n2")
	l.probeRounds(2)
	l.expectNodes("after it", "n1 n2 n3")
}

// Readings differ in the number of answers; established flows remain.
func TestProbesDecideNewFlows(t *testing.T) {
	for reading, want := range map[Reading][4]string{ // after each of two bad answers, and of two good ones
		ByThreshold: {"n1 n2 n3", "n1 n3", "n1 n3", "n1 n2 n3"},
		Mild:        {"n1 n2 n3", "n1 n3", "n1 n2 n3", "n1 n2 n3"},
		Strict:      {"n1 n3", "n1 n3", "n1 n3", "n1 n2 n3"},
	} {
		t.Run(string(reading), func(t *testing.T) {
			l := newLab(t, httpProbe, BalancerOptions{Reading: reading})
			established := l.openTo("n2")
			l.setEndpoints("n1", "n2=terminating", "n3") // it still serves, and its health check fails
			for i, nodes := range want {
				if i == 2 {
					l.setEndpoints("n1", "n2", "n3")
				}
				l.probeRounds(1)
				l.expectNodes("answer "+string(rune('1'+i)), nodes)
				established.expectAlive("probed down")
			}
		})
	}
}

func TestProbeReadings(t *testing.T) {
	for _, c := range []struct {
		reading   Reading
		threshold int
		answers   string // + is good
		up        string // result after each
	}{
		{ByThreshold, 2, "+++-+--++", "-+++++--+"[:9]},
		{ByThreshold, 0, "+-+", "+-+"},
		{Mild, 3, "+--+---+", "++++++-+"},
		{Strict, 3, "+++-++-+++", "--+------+"},
	} {
		var result probeResult
		var got strings.Builder
		for _, a := range c.answers {
			result = result.after(a == '+', c.reading, c.threshold)
			got.WriteByte(map[bool]byte{true: '+', false: '-'}[result.up])
		}
		if got.String() != c.up {
			t.Errorf("%s, threshold %d: answers %s: results %s, want %s", c.reading, c.threshold, c.answers, got.String(), c.up)
		}
	}
}

func TestAllProbedDown(t *testing.T) {
	down := func(l *lab) {
		l.setEndpoints("n1=terminating", "n2=terminating", "n3=terminating")
		l.probeRounds(2)
	}
	l := newLab(t, httpProbe, BalancerOptions{})
	down(l)
	if count := SendFlows(l.options(TCP), 5); count.Lost != 5 {
		t.Errorf("no member takes flows: %s", count)
	}
	l = newLab(t, httpProbe+`,"noHealthyBackendsBehavior":"AllProbedUp"`, BalancerOptions{})
	down(l)
	l.putBalancer("n1", "n2=Down", "n3")
	l.probeRounds(2)
	l.expectNodes("AllProbedUp", "n1 n3")
}

func TestProbesByTCP(t *testing.T) {
	l := newLab(t, `"protocol":"Tcp","port":30080,"intervalInSeconds":5,"probeThreshold":1`, BalancerOptions{})
	l.state.Nodes[1].Labels["dead"] = "true"
	l.apply()
	if count := SendFlows(l.options(TCP), 40); count.Lost == 0 {
		t.Error("no flow met the dead machine before its probe")
	}
	l.probeRounds(1)
	l.expectNodes("n2 is dead", "n1 n3")
}

// A floating IP reaches a node with the frontend's address, which kube-proxy knows from the Service's status.
func TestFloatingIP(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	l.floating = true
	l.putBalancer("n1", "n2", "n3")
	l.probeRounds(2)
	l.expectNodes("floating", "n1 n2 n3")
	l.state.Services[0] = l.state.Services[0].DeepCopy()
	l.state.Services[0].Status.LoadBalancer.Ingress = nil
	l.apply()
	if count := SendFlows(l.options(TCP), 5); count.Lost != 5 {
		t.Errorf("kube-proxy does not know the address: %s", count)
	}
}

// Datagrams of one sender go to one member. Unlike a TCP flow, theirs moves when that one takes no more new flows.
func TestDatagrams(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	count := SendFlows(l.options(UDP), 40)
	if nodesOf(count) != "n1 n2 n3" || count.Lost > 0 {
		t.Fatalf("%s %v %q", count, count.Nodes, count.Failures)
	}
	client := newLoad(l.options(UDP))
	conn, _, first, err := client.connect()
	l.must(err)
	defer conn.Close()
	for range 20 {
		if _, node, err := client.request(conn); err != nil || node != first {
			t.Fatalf("from %s to %s, %v", first, node, err)
		}
	}
	members := []string{"n1", "n2", "n3"}
	members[first[1]-'1'] += "=Down"
	l.putBalancer(members...)
	var moved string
	for range 20 {
		_, node, err := client.request(conn)
		if err != nil || node == first || moved != "" && node != moved {
			t.Fatalf("%s is Down: from %q to %s, %v", first, moved, node, err)
		}
		moved = node
	}
}

func TestDatagramFlowsEnd(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{UDPIdle: time.Millisecond})
	opts := l.options(UDP)
	opts.Timeout = 50 * time.Millisecond // an answer may come after the flow has ended
	SendFlows(opts, 3)
	l.balancer.mu.Lock()
	relay := l.balancer.fronts[frontKey{UDP, dns}].(*udpRelay)
	l.balancer.mu.Unlock()
	l.within("idle flows end", func() bool {
		relay.mu.Lock()
		defer relay.mu.Unlock()
		return len(relay.senders) == 0
	})
}

// The rule's flows end with it, and its address refuses.
func TestARuleThatGoes(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	established := l.openTo("n1")
	l.must(l.emulator.Put(lbID, []byte(`{"location":"eastus","sku":{"name":"Standard"}}`)))
	l.balancer.Refresh()
	l.within("the established flow ends", func() bool {
		_, err := established.send()
		return err != nil
	})
	l.within("no sockets", func() bool {
		_, tcp := l.network.Resolve(DestinationOf(TCP, front))
		_, udp := l.network.Resolve(DestinationOf(UDP, dns))
		return !tcp && !udp
	})
	l.putBalancer("n1")
	l.probeRounds(2)
	l.expectNodes("the rule is back", "n1")
}

func TestConnectionsAreBounded(t *testing.T) {
	network := NewNetwork()
	network.maxConnections = 2
	pod := StartPod(network, PodOptions{Name: "p", Node: "n", IP: podIP("n9"), Ports: []PodPort{{TCP, 8080}}})
	defer pod.Close()
	if err := pod.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	at, _ := network.Resolve(DestinationOf(TCP, netip.AddrPortFrom(podIP("n9"), 8080)))
	target := LoadOptions{Protocol: TCP, Timeout: 5 * time.Minute, Target: func() (netip.AddrPort, bool) { return at, true }}
	var open []net.Conn
	for range 2 {
		conn, _, _, err := newLoad(target).connect()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	if count := SendFlows(target, 1); count.Lost != 1 {
		t.Errorf("a third connection: %s", count)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
}

func TestLoopbackAddress(t *testing.T) {
	for from, want := range map[string]string{
		"198.18.0.3": "127.18.0.3", "10.224.0.4": "127.224.0.4", "10.0.0.1": "127.10.0.1", "::ffff:10.1.2.3": "127.1.2.3", "0.0.0.1": "127.1.0.1",
	} {
		if got := LoopbackAddress(netip.MustParseAddr(from)).String(); got != want {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
	a, b := LoopbackAddress(netip.MustParseAddr("2001:db8::1")), LoopbackAddress(netip.MustParseAddr("2001:db8::2"))
	if a == b || !a.IsLoopback() || a.As4()[1] == 0 {
		t.Errorf("IPv6: %s, %s", a, b)
	}
}

// A port that is in use is replaced, and Resolve returns the replacement.
func TestAPortInUse(t *testing.T) {
	network, other := NewNetwork(), NewNetwork()
	at := DestinationOf(TCP, netip.MustParseAddrPort("10.79.0.1:8085"))
	serve := func(n *Network) *tcpServer {
		s, err := n.listenTCP(at, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := serve(network), serve(other)
	a, _ := network.Resolve(at)
	b, ok := other.Resolve(at)
	if a == b || !ok {
		t.Errorf("%s and %s", a, b)
	}
	if _, err := network.listenTCP(at, nil); err == nil {
		t.Error("one destination has two listeners")
	}
	first.close()
	second.close()
	if _, ok := network.Resolve(at); ok {
		t.Error("a closed listener is still resolved")
	}
	want := []string{"127.79.0.1:80", "127.79.0.1:8080", "127.79.0.1:0", "127.0.0.1:0"}
	if got := DestinationOf(TCP, netip.MustParseAddrPort("10.79.0.1:80")).candidates(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Azure's health of a rule is what the probes found.
func TestHealthFollowsProbes(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	l.emulator.ReportHealth(l.balancer.ProbeState)
	l.setEndpoints("n1", "n2=terminating", "n3")
	l.probeRounds(2)
	for _, r := range l.emulator.ForwardingRules() {
		for _, m := range r.Members {
			if up, known := l.balancer.ProbeState(*r.Probe, m.IP); !known || up != (m.IP != nodeIP("n2")) {
				t.Errorf("%s: %s up %t, known %t", r.Rule, m.IP, up, known)
			}
		}
	}
}
