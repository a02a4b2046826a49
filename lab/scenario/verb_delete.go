// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

func doDeletePool(s *Stage, a *argReader) (string, error) {
	pools := a.wordArgs()
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	for _, name := range pools {
		s.mu.Lock()
		k := s.poolNamed(name)
		s.mu.Unlock()
		if k == nil {
			return "", fmt.Errorf("there is no pool %s", name)
		}
		if err := s.deletePool(k); err != nil {
			return "", err
		}
	}
	return "", nil
}

// deletePool removes a pool from its load balancer at once. A DELETE takes time, in which an
// overlapping write could undo it.
func (s *Stage) deletePool(k *pool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := k.id.LoadBalancer.String()
	raw, ok := s.emulator.Get(id)
	if _, found := s.azureAddresses(k); !ok || !found {
		return fmt.Errorf("pool %s is not in Azure", k.id.Name)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	properties, _ := body["properties"].(map[string]any)
	pools, _ := properties["backendAddressPools"].([]any)
	properties["backendAddressPools"] = slices.DeleteFunc(pools, func(p any) bool {
		entry, _ := p.(map[string]any)
		return entry["name"] == k.id.Name
	})
	rest, err := json.Marshal(body)
	if err != nil {
		return err
	}
	s.addLine(k.id.Name, "deleted by another client")
	k.deleted, k.foreign = true, nil
	s.invalidateSnapshots()
	return s.emulator.Put(id, rest)
}

func doDeleteBalancer(s *Stage, a *argReader) (string, error) {
	balancers := a.wordArgs()
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	for _, name := range balancers {
		s.mu.Lock()
		id := s.findLoadBalancer(name)
		s.mu.Unlock()
		if id == nil {
			return "", fmt.Errorf("there is no load balancer %s", name)
		}
		if err := s.deleteResource(name, id.String(), func(p *pool) bool { return p.id.LoadBalancer.Key() == id.Key() }); err != nil {
			return "", err
		}
	}
	return "", nil
}

// deleteResource deletes a resource as another client and waits for the deletion.
func (s *Stage) deleteResource(name, id string, hit func(*pool) bool) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, "http://127.0.0.1:8080"+id+"?api-version=2025-05-01", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer somebody-else")
	resp, err := s.emulator.Transport().Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("deleting %s: status %d", name, resp.StatusCode)
	}
	s.mu.Lock()
	s.invalidateSnapshots()
	s.addLine(name, "deleted by another client")
	for _, k := range s.pools {
		if hit(k) {
			k.deleted, k.foreign = true, nil
		}
	}
	s.mu.Unlock()
	for range 100 { // an overlapping write may undo it temporarily
		if _, ok := s.emulator.Get(id); !ok {
			return nil
		}
		s.sleepFor(100 * time.Millisecond)
	}
	return fmt.Errorf("%s is still there", name)
}

func doDeleteService(s *Stage, a *argReader) (string, error) {
	services := a.wordArgs()
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	for _, name := range services {
		s.mu.Lock()
		if s.cluster.services[name] == nil {
			s.mu.Unlock()
			return "", fmt.Errorf("there is no Service %s", name)
		}
		delete(s.cluster.services, name)
		s.mu.Unlock()
		s.notifyChange(object{"Service", name})
	}
	return "", nil
}
