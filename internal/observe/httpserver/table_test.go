// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func address(i int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 10<<24+uint32(i))))
}

// The address with the most connections loses its oldest to the next client, even to itself.
func TestTheAddressWithTheMostConnectionsLosesOne(t *testing.T) {
	now := time.Unix(0, 0)
	for name, tt := range map[string]struct {
		open []int // addresses of the connections, in order
		next int
		want int // which of open is closed
	}{
		"a flood, and another client":      {[]int{1, 1, 1, 1}, 2, 0},
		"a flood goes on":                  {[]int{2, 1, 1, 1}, 1, 1},
		"many addresses with one each":     {[]int{1, 2, 3, 4}, 5, 0},
		"the oldest is of a modest client": {[]int{1, 2, 3, 3}, 4, 2},
	} {
		table, conns := newTable(len(tt.open)), make([]*limitedConn, len(tt.open))
		for i, a := range tt.open {
			conns[i] = &limitedConn{}
			if evicted, ok := table.addConn(conns[i], address(a), now); evicted != nil || !ok {
				t.Fatalf("%s: connection %d of %d: %v, %v", name, i, len(tt.open), evicted, ok)
			}
		}
		evicted, ok := table.addConn(&limitedConn{}, address(tt.next), now)
		if !ok || evicted != conns[tt.want] {
			t.Errorf("%s: another connection than %d is closed, or the new one is refused (%v)", name, tt.want, !ok)
		}
	}
}

// The table never exceeds its limit or loses a connection, and does not evict a client with no more
// connections than any other.
func TestTableLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		table, now, open := newTable(limit), time.Unix(0, 0), map[*limitedConn]netip.Addr{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond)
			if len(open) > 0 && rapid.IntRange(0, 3).Draw(t, "close") == 0 {
				for c := range open {
					table.removeConn(c)
					delete(open, c)
					break
				}
				continue
			}
			c, from := &limitedConn{}, address(rapid.IntRange(0, 5).Draw(t, "address"))
			evicted, ok := table.addConn(c, from, now)
			if !ok {
				t.Fatalf("%s is refused within its rate", from)
			}
			open[c] = from
			counts, maximum := map[netip.Addr]int{}, 0
			for _, a := range open {
				counts[a]++
				maximum = max(maximum, counts[a])
			}
			if evicted != nil && counts[open[evicted]] != maximum {
				t.Fatalf("a connection of %s is closed, which has %d of %d; another has %d", open[evicted], counts[open[evicted]], len(open), maximum)
			}
			if evicted == c && limit > 1 {
				t.Fatalf("the newest connection is closed")
			}
			delete(open, evicted)
			if len(open) > limit || len(open) != len(table.open) {
				t.Fatalf("%d connections are open, %d in the table; the limit is %d", len(open), len(table.open), limit)
			}
		}
	})
}

func TestNewConnectionsHaveARate(t *testing.T) {
	table, now := newTable(1000), time.Unix(0, 0)
	count := func(from netip.Addr, tries int) (n int) {
		for range tries {
			c := &limitedConn{}
			if _, ok := table.addConn(c, from, now); ok {
				n++
				table.removeConn(c)
			}
		}
		return n
	}
	if got := count(address(1), 10*connectionBurst); got != connectionBurst {
		t.Errorf("%d connections at once, want %d", got, connectionBurst)
	}
	if got := count(address(2), 1); got != 1 {
		t.Error("the rate of one address keeps another out")
	}
	if now = now.Add(time.Second); count(address(1), connectionBurst) != connectionRate {
		t.Errorf("want %d a second later", connectionRate)
	}
	for i := range 3 * maxRates {
		count(address(i), connectionBurst+1)
		if len(table.rates) > maxRates {
			t.Fatalf("the rates of %d addresses are kept", len(table.rates))
		}
	}
}
