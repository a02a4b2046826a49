// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// writeCertificate returns a directory with a certificate for localhost.
func writeCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// In the cluster, users sign in with a token; an unknown token gets an error message.
func TestSignIn(t *testing.T) {
	_, api := serve(t, "troubled.json")
	address, _ := weirPageWith(t, api.URL, "--certificate", writeCertificate(t))
	for _, l := range []browserConfig{desktop, night, phone} {
		t.Run(l.name, func(t *testing.T) {
			b := openTab(t, l, "about:blank")
			b.ignoreProblems() // another host than that of the tab, and the form's 401
			check := func(name string) {
				t.Helper()
				if wide := evaluate[[]string](b, tooWide); len(wide) > 0 || evaluate[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth") {
					t.Errorf("%s is wider than the window: %q", name, wide)
				}
				if texts := evaluate[[]string](b, lowContrast); len(texts) > 0 {
					t.Errorf("%s is hard to read: %q", name, texts)
				}
				if small := evaluate[[]string](b, `[...document.querySelectorAll("input, button")].filter((e) => e.getBoundingClientRect().height < 32).map((e) => e.outerHTML)`); len(small) > 0 {
					t.Errorf("%s is hard to hit: %q", name, small)
				}
				b.saveScreenshot(name + "-" + l.name)
			}
			b.do(newCommand(security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true}), chromedp.Navigate(address))
			b.waitUntil(`document.activeElement.id === "token"`)
			check("sign-in")
			b.do(chromedp.KeyEvent("unknown"), chromedp.KeyEvent(kb.Enter))
			b.waitUntil(`document.querySelector("[role=alert]").innerText.includes("does not know this token")`)
			b.waitUntil(`document.activeElement.id === "token"`)
			check("sign-in-refused")
			b.do(chromedp.KeyEvent(token), chromedp.KeyEvent(kb.Enter))
			b.waitUntil(`document.querySelector("h1").innerText.startsWith("Something is wrong")`)
			if text := evaluate[string](b, "document.body.innerText + document.cookie + location.href"); strings.Contains(text, token) || !strings.Contains(text, "Sign out") {
				t.Error(text)
			}
			check("signed-in")
			evaluate[any](b, `document.querySelector("form[action='/logout'] button").click()`)
			b.waitUntil(`document.querySelector("h1").innerText === "Sign in"`)
		})
	}
}
