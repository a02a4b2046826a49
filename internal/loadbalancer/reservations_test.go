// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/loadbalancer"
)

// reservationStore is the ConfigMap of reservations; it survives the process.
type reservationStore struct {
	mu      sync.Mutex
	record  loadbalancer.PrivateIPRecord
	version int
	// unreadable fails reads, unwritable fails writes.
	unreadable, unwritable bool
}

func (s *reservationStore) ReadReservations(context.Context) (loadbalancer.PrivateIPRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreadable {
		return loadbalancer.PrivateIPRecord{}, errors.New("the API server is away")
	}
	return loadbalancer.PrivateIPRecord{Version: s.record.Version, Reservations: maps.Clone(s.record.Reservations)}, nil
}

func (s *reservationStore) WriteReservations(_ context.Context, r loadbalancer.PrivateIPRecord) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwritable {
		return "", errors.New("the API server is away")
	}
	if r.Version != s.record.Version {
		return "", fmt.Errorf("version %q is not %q", r.Version, s.record.Version)
	}
	s.version++
	s.record = loadbalancer.PrivateIPRecord{Version: strconv.Itoa(s.version), Reservations: maps.Clone(r.Reservations)}
	return s.record.Version, nil
}

// set changes the store: unreadable, unwritable, fine or lost.
func (s *reservationStore) set(about string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreadable, s.unwritable = about == "unreadable", about == "unwritable"
	if about == "lost" {
		s.record = loadbalancer.PrivateIPRecord{}
	}
}

// A plan respects reservations of other namespaces and writes none.
func TestAPlanShowsReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer s.close()
		until := time.Now().Add(loadbalancer.PrivateIPTTL)
		key := strings.ToLower(vnetID) + "/subnets/nodes 10.0.0.9"
		s.reservations.record.Reservations = map[string]loadbalancer.PrivateIPReservation{key: {Namespace: "bank", LoadBalancer: "kubernetes-internal", Expires: until}}
		s.applyAll(`
evil/a: {ports: 80, azure-load-balancer-internal: "true", loadBalancerIP: 10.0.0.9}
evil/b: {ports: 80, azure-load-balancer-internal: "true", loadBalancerIP: 10.0.0.10}`)
		s.stop()
		s.launch() // an API server that the Services have not reached yet
		_, results := s.rehearse()
		if len(results) != 2 || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), "is reserved for namespace bank, which used it last, until 2000-01-01T01:00:00Z") || results[1].Err != nil {
			t.Errorf("%v", results)
		}
		if s.reservations.version != 0 {
			t.Error("a plan wrote a reservation")
		}
	})
}
