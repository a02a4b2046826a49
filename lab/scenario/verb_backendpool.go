// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
)

func doCreateBackendPool(s *Stage, a *reader) (string, error) {
	some := a.has("nodes")
	service, nodes := a.text("service", ""), a.list("nodes")
	name := a.word("POOL")
	if (service == "") != some {
		a.complain("want service= or nodes=")
	}
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	k := s.poolNamed(name)
	switch {
	case k == nil:
		s.mu.Unlock()
		return "", fmt.Errorf("there is no pool %s", name)
	case s.cluster.bindings[name] != nil:
		s.mu.Unlock()
		return "", fmt.Errorf("the BackendPool %s is there", name)
	}
	b := s.claim(service, nodes, k)
	s.mu.Unlock()
	if p := s.alive(); p != nil {
		p.reconcile(b, true)
	}
	return "", nil
}

func doDeleteBackendPool(s *Stage, a *reader) (string, error) {
	return "", s.askFor(a, func(b *binding) error { b.deleting = true; return nil })
}

func doSelect(s *Stage, a *reader) (string, error) {
	nodes := a.list("nodes")
	return "", s.askFor(a, func(b *binding) error {
		if b.service != "" {
			return errors.New("its members are a Service's")
		}
		b.nodes = nodes
		return nil
	})
}

// askFor changes BackendPools and notifies the process.
func (s *Stage) askFor(a *reader, change func(*binding) error) error {
	pools := a.words()
	if err := a.err(); err != nil {
		return err
	}
	for _, name := range pools {
		s.mu.Lock()
		b, err := s.backendPool(name)
		if err == nil {
			err = change(b)
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if p := s.alive(); p != nil {
			p.reconcile(b, true)
		}
	}
	return nil
}
