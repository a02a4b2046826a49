// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"weir.dev/weir/internal/privateip"
)

// reservationStore is the ConfigMap of reservations: it outlives a process. It implements privateip.Store.
type reservationStore struct {
	mu      sync.Mutex
	record  privateip.Record
	version int
	// unreadable fails reads, unwritable fails writes.
	unreadable, unwritable bool
}

// ReadReservations implements privateip.Store.
func (s *reservationStore) ReadReservations(context.Context) (privateip.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreadable {
		return privateip.Record{}, errors.New("the API server is away")
	}
	return privateip.Record{Version: s.record.Version, Reservations: maps.Clone(s.record.Reservations)}, nil
}

// WriteReservations implements privateip.Store.
func (s *reservationStore) WriteReservations(_ context.Context, r privateip.Record) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwritable {
		return "", errors.New("the API server is away")
	}
	if r.Version != s.record.Version {
		return "", fmt.Errorf("version %q is not %q", r.Version, s.record.Version)
	}
	s.version++
	s.record = privateip.Record{Version: strconv.Itoa(s.version), Reservations: maps.Clone(r.Reservations)}
	return s.record.Version, nil
}

// set changes the store: unreadable, unwritable, fine or lost.
func (s *reservationStore) set(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreadable, s.unwritable = what == "unreadable", what == "unwritable"
	if what == "lost" {
		s.record = privateip.Record{}
	}
}
