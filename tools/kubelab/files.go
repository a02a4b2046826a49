// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// openDirectory opens the directory of a run. An empty name creates a temporary one, which remove
// deletes; a named one is retained, and locked against a second kubelab.
func openDirectory(name string) (dir string, remove func() error, err error) {
	if name == "" {
		if dir, err = os.MkdirTemp("", "kubelab-"); err != nil {
			return "", nil, err
		}
		return dir, func() error { return removeInUse(dir) }, nil
	}
	if dir, err = filepath.Abs(name); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("--dir %s: %w", name, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("--dir %s: %w", name, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return "", nil, fmt.Errorf("--dir %s: another kubelab uses it (%w); stop that one or name another directory", name, err)
	}
	return dir, lock.Close, nil
}

// removeInUse deletes a directory while etcd still writes to it, retrying if files appear.
func removeInUse(dir string) (err error) {
	for range 5 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
	}
	return err
}

// writeNew writes a file unless it exists, so that a reused directory retains its keys and tokens.
func writeNew(file string, content []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// logTo redirects Kubernetes logs of this process to a file; only fatal errors go to stderr.
func logTo(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"v": "0", "logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("klog's flag %s: %w", name, err)
		}
	}
	// klog writes a line to its own severity's output and to all lower ones, so a single output contains
	// every line once.
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", f)
	return nil
}

// writeKubeconfig writes the admin kubeconfig atomically, so that a process waiting for the file never
// reads a partial one.
func writeKubeconfig(file string, config *rest.Config) error {
	const name = "kubelab"
	content, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: name,
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:  map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
	})
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-") // mode 0600
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write kubeconfig: %w", err), os.Remove(temp.Name()))
	}
	return nil
}
