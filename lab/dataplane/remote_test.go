// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A balancer that reads another process's emulator forwards as one that reads its own, and works on while it is away.
func TestTheAdminAPIAsSource(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	server := httptest.NewServer(l.emulator.Admin())
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	source := AdminSource(client, server.URL+"/_emu/")
	l.balancer.Close()
	l.balancer = StartBalancer(l.network, BalancerOptions{Source: source, TimeScale: 1e6})
	t.Cleanup(l.balancer.Close)
	l.probeRounds(2)
	l.expectNodes("all", "n1 n2 n3")
	l.putBalancer("n1", "n2=Down", "n3")
	l.within("n2 Down", func() bool { return len(l.balancer.Takers(TCP, front)) == 2 })
	l.expectNodes("n2 Down", "n1 n3")
	server.Close()
	l.within("the emulator is away", func() bool {
		l.balancer.Refresh()
		return l.balancer.Err() != nil
	})
	l.expectNodes("the emulator is away", "n1 n3")
}
