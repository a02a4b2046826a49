// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Options configure a Server. The zero value is usable.
type Options struct {
	// Seed determines UIDs, generated names, node ports and cluster IPs.
	Seed uint64
	// CollectAfter delays the deletion of orphans; default 1 s.
	CollectAfter time.Duration
	// Remember limits the retained events per kind, which a watch can replay; default 10000.
	Remember int
	// OwnFromApply tracks field ownership only from the first server-side apply on, which halves
	// the cost of other writes. A forced apply makes no difference; others conflict with
	// before-first-apply.
	OwnFromApply bool
}

// Server is an API server with its store. It is safe for concurrent use.
type Server struct {
	opts Options

	mu     sync.Mutex
	rng    *rand.Rand
	kinds  map[string]map[string]*kind // by group and version, then by resource
	stores map[*kind]*store
	// version is the version of the latest write of any kind.
	version uint64
	closed  bool
	faults  []*Fault
	log     []Request
	// collections are the garbage collector's timers.
	collections map[*time.Timer]struct{}
	collecting  sync.WaitGroup
}

// New returns a server with the default namespaces. It starts nothing.
func New(opts Options) *Server {
	if opts.CollectAfter == 0 {
		opts.CollectAfter = time.Second
	}
	if opts.Remember == 0 {
		opts.Remember = 10000
	}
	s := &Server{
		opts: opts, rng: rand.New(rand.NewPCG(opts.Seed, 1)), //nolint:gosec // the same seed, the same names
		kinds: map[string]map[string]*kind{}, stores: map[*kind]*store{}, collections: map[*time.Timer]struct{}{},
	}
	for _, k := range builtIn() {
		s.add(k)
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		if _, err := s.Put(newNamespace(name)); err != nil {
			panic(err) // a bug in this package
		}
	}
	s.log = nil
	return s
}

// add serves a kind.
func (s *Server) add(k *kind) {
	gv := k.gvk.GroupVersion().String()
	k.managers.lazily = s.opts.OwnFromApply
	if s.kinds[gv] == nil {
		s.kinds[gv] = map[string]*kind{}
	}
	s.kinds[gv][k.resource] = k
	s.stores[k] = newStore()
}

// RESTConfig returns the configuration of a client, whose name appears in the log and selects
// faults.
func (s *Server) RESTConfig(client string) *rest.Config {
	return &rest.Config{Host: "http://apiserver.invalid", Transport: s.Transport(client), QPS: -1, UserAgent: client}
}

// Close ends all watches and the garbage collector. Later requests get no connection.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for t := range s.collections {
		if t.Stop() {
			s.collecting.Done()
		}
	}
	clear(s.collections)
	s.breakWatches(func(*watcher) bool { return true }, errReset)
	s.mu.Unlock()
	s.collecting.Wait()
}

// uid returns a new UID.
func (s *Server) uid() types.UID {
	a, b := s.rng.Uint64(), s.rng.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff))
}

// suffix returns the suffix for a generateName.
func (s *Server) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b [5]byte
	for i := range b {
		b[i] = letters[s.rng.IntN(len(letters))]
	}
	return string(b[:])
}

// key identifies an object within its kind.
func key(namespace, name string) string { return namespace + "/" + name }

// object is a stored object, typed or unstructured. It is immutable.
type object interface {
	runtime.Object
	metaObject
}
