// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
)

func doCreateBackendPool(s *Stage, a *argReader) (string, error) {
	some := a.hasArg("nodes")
	service, nodes := a.textArg("service", ""), a.listArg("nodes")
	name := a.wordArg("POOL")
	if (service == "") != some {
		a.addError("want service= or nodes=")
	}
	if err := a.joinErrors(); err != nil {
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
	b := s.newBackendPool(service, nodes, k)
	s.mu.Unlock()
	if p := s.runningProcess(); p != nil {
		p.reconcilePool(b, true)
	}
	return "", nil
}

func doDeleteBackendPool(s *Stage, a *argReader) (string, error) {
	return "", s.changeBackendPool(a, func(b *backendPool) error { b.isDeleting = true; return nil })
}

func doSelect(s *Stage, a *argReader) (string, error) {
	nodes := a.listArg("nodes")
	return "", s.changeBackendPool(a, func(b *backendPool) error {
		if b.service != "" {
			return errors.New("its members are a Service's")
		}
		b.nodes = nodes
		return nil
	})
}

// changeBackendPool changes BackendPools and notifies the process.
func (s *Stage) changeBackendPool(a *argReader, change func(*backendPool) error) error {
	pools := a.wordArgs()
	if err := a.joinErrors(); err != nil {
		return err
	}
	for _, name := range pools {
		s.mu.Lock()
		b, err := s.findBackendPool(name)
		if err == nil {
			err = change(b)
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if p := s.runningProcess(); p != nil {
			p.reconcilePool(b, true)
		}
	}
	return nil
}
