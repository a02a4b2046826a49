// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"testing"
	"time"

	"weir.dev/weir/internal/kube"
	"weir.dev/weir/test/apifault"
)

// A partition stands for one of two minutes. What grows in it are back-offs: that of
// the informers (0.8 s doubling to 30 s, and up to twice that by chance) and that of
// the work queue (5 ms doubling, so it tries after 10.2, 20.5 and 41 s, whatever the
// length). After 23 s both wait for some 20 s more, so a controller that only waits for
// them misses the time that it is given here to catch up.
const (
	partition = 23 * time.Second
	catchUp   = 10 * time.Second
)

func TestPartitions(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  func(*apifault.Proxy)
	}{
		{"connections are refused", (*apifault.Proxy).Refuse},
		// Connections that fall silent are given up after 3 s here, by what TestMain sets;
		// after 45 s by default.
		{"nothing answers", (*apifault.Proxy).Swallow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.starts(kube.StandardRequeue())
			s.level(1)
			s.proxy.Forget()
			writes := s.writes()

			// The partition begins as the controller records what it is about to write, and
			// the endpoints move on while it cannot see them.
			record := apifault.Request{Verb: "patch", Resource: "backendpools/status"}
			whole := s.proxy.On(apifault.Rule{Request: record, Fault: apifault.Fault{Conn: apifault.Reset}})
			s.moves(1, 2)
			until(t, func() string {
				if sent, _ := s.proxy.Count(record); sent == 0 {
					return "nothing was recorded"
				}
				return ""
			})
			tt.cut(s.proxy)
			whole()
			s.moves(3, 4)
			s.lasts(partition)
			if n := s.writes() - writes; n != 0 {
				t.Errorf("%d writes to Azure behind a partition, and none could be recorded", n)
			}
			sent, _ := s.proxy.Count(apifault.Request{})
			s.moves(5, 6)
			if err := s.proxy.Heal(); err != nil {
				t.Fatal(err)
			}
			took := s.level(5, 6)
			t.Logf("level %s after it; %d requests came to the proxy in it", took.Round(10*time.Millisecond), sent)
			if took > catchUp {
				t.Errorf("it took %s to catch up, longer than %s", took, catchUp)
			}
			s.keptItsWord()
			s.moves(2)
			if took := s.level(2); took > catchUp {
				t.Errorf("the next change took %s", took)
			}
		})
	}
}

// The last word about a pool is one that could not be written: nothing changes after
// the partition that would bring it up again.
func TestAStatusThatWasKeptIsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.starts(kube.StandardRequeue())
	s.level(1)

	// Azure takes the write, and the API server goes before it hears of that.
	s.afterNextWrite(s.proxy.Refuse)
	s.moves(1, 2)
	until(t, func() string {
		if len(s.pool()) == 3 {
			return ""
		}
		return "not written yet"
	})
	s.lasts(partition)
	if got := len(s.status().WrittenAddresses); got != 2 {
		t.Errorf("%d addresses are recorded", got)
	}
	if err := s.proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	took := s.level(1, 2)
	t.Logf("said so %s after it", took.Round(10*time.Millisecond))
	if took > catchUp {
		t.Errorf("it took %s to say so, longer than %s", took, catchUp)
	}
	s.keptItsWord()
}
