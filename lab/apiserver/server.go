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
	// CollectionDelay delays the deletion of orphans; default 1 s.
	CollectionDelay time.Duration
	// MaxEvents limits the events per kind that a watch can replay; default 10000.
	MaxEvents int
	// OwnershipFromApply tracks field ownership only from the first server-side apply on, which halves
	// the cost of other writes. Applies without force conflict with before-first-apply.
	OwnershipFromApply bool
}

// Server is safe for concurrent use.
type Server struct {
	opts Options

	mu     sync.Mutex
	rng    *rand.Rand
	kinds  map[string]map[string]*resourceKind // by group and version, then by resource
	stores map[*resourceKind]*objectStore
	// version of the latest write of any kind
	version            uint64
	closed             bool
	faults             []*Fault
	log                []Request
	collectionTimers   map[*time.Timer]struct{}
	pendingCollections sync.WaitGroup
}

// New returns a server with the default namespaces.
func New(opts Options) *Server {
	if opts.CollectionDelay == 0 {
		opts.CollectionDelay = time.Second
	}
	if opts.MaxEvents == 0 {
		opts.MaxEvents = 10000
	}
	s := &Server{
		opts: opts, rng: rand.New(rand.NewPCG(opts.Seed, 1)), //nolint:gosec // the same seed, the same names
		kinds: map[string]map[string]*resourceKind{}, stores: map[*resourceKind]*objectStore{}, collectionTimers: map[*time.Timer]struct{}{},
	}
	for _, k := range builtInKinds() {
		s.addKind(k)
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		if _, err := s.Put(newNamespace(name)); err != nil {
			panic(err) // a bug in this package
		}
	}
	s.log = nil
	return s
}

func (s *Server) addKind(k *resourceKind) {
	gv := k.gvk.GroupVersion().String()
	k.managers.fromApply = s.opts.OwnershipFromApply
	if s.kinds[gv] == nil {
		s.kinds[gv] = map[string]*resourceKind{}
	}
	s.kinds[gv][k.resource] = k
	s.stores[k] = newStore()
}

// RESTConfig returns the configuration of a client. Its name appears in the log and selects faults.
func (s *Server) RESTConfig(client string) *rest.Config {
	return &rest.Config{Host: "http://apiserver.invalid", Transport: s.Transport(client), QPS: -1, UserAgent: client}
}

// Close ends all watches and the garbage collector. Later requests get no connection.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for t := range s.collectionTimers {
		if t.Stop() {
			s.pendingCollections.Done()
		}
	}
	clear(s.collectionTimers)
	s.breakWatches(func(*watcher) bool { return true }, errReset)
	s.mu.Unlock()
	s.pendingCollections.Wait()
}

func (s *Server) newUID() types.UID {
	a, b := s.rng.Uint64(), s.rng.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff))
}

func (s *Server) nameSuffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b [5]byte
	for i := range b {
		b[i] = letters[s.rng.IntN(len(letters))]
	}
	return string(b[:])
}

func objectKey(namespace, name string) string { return namespace + "/" + name }

// object is immutable once stored.
type object interface {
	runtime.Object
	metaObject
}
