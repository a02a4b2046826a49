// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The client does not retry.
func runInBubble(t *testing.T, run func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		run(t, s, newClient(t, s, "one").ConfigMaps("default"))
	})
}

func newClient(t *testing.T, s *Server, name string) *typedcorev1.CoreV1Client {
	t.Helper()
	core, err := typedcorev1.NewForConfig(s.RESTConfig(name))
	if err != nil {
		t.Fatal(err)
	}
	return core
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestRequestsAreRefused(t *testing.T) {
	for status, current := range map[int]func(error) bool{
		http.StatusConflict: apierrors.IsConflict, http.StatusTooManyRequests: apierrors.IsTooManyRequests,
		http.StatusInternalServerError: apierrors.IsInternalError, http.StatusServiceUnavailable: apierrors.IsServiceUnavailable,
		http.StatusGatewayTimeout: apierrors.IsTimeout,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			runInBubble(t, func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface) {
				end := s.Inject(Fault{Client: "one", Verb: "create", Resource: "configmaps", Status: status})
				if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !current(err) {
					t.Errorf("got %v", err)
				}
				if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("it was written: %v", err)
				}
				end()
				if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}

func TestRetryAfterIsWaitedFor(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface) {
		began := time.Now()
		s.Inject(Fault{Verb: "list", Status: http.StatusTooManyRequests, RetryAfter: 7 * time.Second, Times: 2})
		if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if elapsed := time.Since(began); elapsed != 14*time.Second {
			t.Errorf("client-go took %s", elapsed)
		}
	})
}

func TestRequestsTakeTime(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface) {
		s.Inject(Fault{Client: "one", Latency: 3 * time.Second})
		began := time.Now()
		if _, err := newClient(t, s, "two").ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil || time.Since(began) != 0 {
			t.Errorf("another client: %v after %s", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := maps.List(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

func TestAnswerIsLost(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface) {
		s.Inject(Fault{Verb: "create", DropResponse: true, Times: 1})
		if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err == nil {
			t.Error("the answer came")
		}
		if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("it was not written: %v", err)
		}
	})
}

func TestServerIsAway(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface) {
		end := s.Inject(Fault{Unreachable: true})
		_, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			t.Errorf("got %v", err)
		}
		end()
		if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
}

type recordedInformer struct {
	cache.SharedIndexInformer
	mu     sync.Mutex
	events []string
}

func startInformer(t *testing.T, s *Server) *recordedInformer {
	t.Helper()
	client := newClient(t, s, "one").RESTClient()
	i := &recordedInformer{SharedIndexInformer: cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(client, "configmaps", "default", fields.Everything()), &corev1.ConfigMap{}, 0, cache.Indexers{})}
	tell := func(about string) func(any) {
		return func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				about, o = "missed", gone.Obj
			}
			i.mu.Lock()
			defer i.mu.Unlock()
			i.events = append(i.events, about+" "+o.(*corev1.ConfigMap).Name)
		}
	}
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell("added"), DeleteFunc: func(o any) { tell("deleted")(o) }, UpdateFunc: func(_, o any) { tell("changed")(o) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); i.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return i
}

// expectEvents expects these events since the last call.
func (i *recordedInformer) expectEvents(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Equal(i.events, want) {
		t.Errorf("the informer told %q, want %q", i.events, want)
	}
	i.events = nil
}

func TestEventsComeLate(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, _ typedcorev1.ConfigMapInterface) {
		i := startInformer(t, s)
		s.Inject(Fault{Client: "one", Verb: "watch", Resource: "configmaps", EventDelay: 5 * time.Second, Events: []watch.EventType{watch.Added}})
		putConfigMap(t, s, configMap("a"))
		time.Sleep(4 * time.Second)
		if err := s.Delete("configmaps", "default", "a"); err != nil {
			t.Fatal(err)
		}
		i.expectEvents(t)
		time.Sleep(time.Second)
		i.expectEvents(t, "added a", "deleted a")
	})
}

func TestBrokenWatchGoesOnWhereItWas(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, _ typedcorev1.ConfigMapInterface) {
		i := startInformer(t, s)
		putConfigMap(t, s, configMap("a"))
		i.expectEvents(t, "added a")
		end := s.Inject(Fault{Unreachable: true})
		if n := s.BreakWatches("one", "configmaps"); n != 1 {
			t.Errorf("%d watches broke", n)
		}
		putConfigMap(t, s, configMap("b"))
		if err := s.Delete("configmaps", "default", "b"); err != nil {
			t.Fatal(err)
		}
		i.expectEvents(t)
		end()
		time.Sleep(time.Minute)
		i.expectEvents(t, "added b", "deleted b")
	})
}

func TestExpiredWatchListsAgainAndMissesWhatCameAndWent(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, _ typedcorev1.ConfigMapInterface) {
		i := startInformer(t, s)
		putConfigMap(t, s, configMap("a"))
		i.expectEvents(t, "added a")
		end := s.Inject(Fault{Unreachable: true})
		s.BreakWatches("one", "")
		putConfigMap(t, s, configMap("b"))
		for _, name := range []string{"a", "b"} {
			if err := s.Delete("configmaps", "default", name); err != nil {
				t.Fatal(err)
			}
		}
		putConfigMap(t, s, configMap("c"))
		s.Compact("configmaps")
		end()
		time.Sleep(time.Minute)
		i.expectEvents(t, "missed a", "added c")
		if n := s.ExpireWatches("one", "configmaps"); n != 1 {
			t.Errorf("%d watches expired", n)
		}
		putConfigMap(t, s, configMap("d"))
		time.Sleep(time.Minute)
		i.mu.Lock()
		slices.Sort(i.events) // client-go delivers the events of a list in any order
		i.mu.Unlock()
		i.expectEvents(t, "added d", "changed c") // unchanged objects again
	})
}

func TestCollectorFollowsTheOwner(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface) {
		owner := putConfigMap(t, s, configMap("owner")).(*corev1.ConfigMap)
		owned := configMap("owned")
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
		putConfigMap(t, s, owned)
		time.Sleep(time.Minute)
		if err := maps.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), "owned", metav1.GetOptions{}); err != nil {
			t.Errorf("at once: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := maps.Get(t.Context(), "owned", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a second later: %v", err)
		}
	})
}

func TestNamespaceGoesWithItsContents(t *testing.T) {
	runInBubble(t, func(t *testing.T, s *Server, maps typedcorev1.ConfigMapInterface) {
		kept := configMap("kept")
		kept.Finalizers = []string{"example.com/f"}
		putConfigMap(t, s, kept)
		putConfigMap(t, s, configMap("a"))
		if err := s.Delete("namespaces", "", "default"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := s.Get("namespaces", "", "default"); err != nil {
			t.Errorf("it went before its contents: %v", err)
		}
		if _, err := maps.Patch(t.Context(), "kept", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if o, err := s.Get("namespaces", "", "default"); !apierrors.IsNotFound(errors.Unwrap(err)) {
			t.Errorf("it stays: %v, %v", o, err)
		}
	})
}

func putConfigMap(t *testing.T, s *Server, o *corev1.ConfigMap) any {
	t.Helper()
	got, err := s.Put(o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func BenchmarkSmallRequest(b *testing.B) {
	s := New(Options{OwnershipFromApply: true})
	cfg := s.RESTConfig("bench")
	cfg.GroupVersion, cfg.NegotiatedSerializer, cfg.APIPath = &corev1.SchemeGroupVersion, clientscheme.Codecs.WithoutConversion(), "/api"
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		b.Fatal(err)
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := s.Put(svc); err != nil {
		b.Fatal(err)
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			if err := client.Get().Namespace("default").Resource("services").Name("web").Do(b.Context()).Error(); err != nil {
				b.Fatal(err)
			}
		}
	})
	n := 0
	b.Run("patch", func(b *testing.B) {
		for b.Loop() {
			n++
			body := []byte(`{"metadata":{"annotations":{"n":"` + time.Duration(n).String() + `"}}}`)
			if err := client.Patch("application/merge-patch+json").Namespace("default").Resource("services").Name("web").Body(body).Do(b.Context()).Error(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
