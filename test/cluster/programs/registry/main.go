// Registry serves container images, by plain http, from a folder. What it is
// pushed is there again after a restart.
//
//	registry -address HOST:PORT -folder DIR
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	address := flag.String("address", "", "where to listen")
	folder := flag.String("folder", "", "where the images are kept")
	flag.Parse()

	manifests := filepath.Join(*folder, "manifests")
	blobs := filepath.Join(*folder, "blobs")
	if err := errors.Join(os.MkdirAll(manifests, 0o755), os.MkdirAll(blobs, 0o755)); err != nil {
		log.Fatal(err)
	}
	handler := registry.NewDiskBlobHandler(blobs)
	images := registry.New(registry.WithBlobHandler(handler), registry.Logger(log.New(io.Discard, "", 0)))
	if err := replay(images, manifests); err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *address, Handler: record(images, manifests), ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}

// pushed is a manifest as it was pushed: the registry keeps blobs on disk, but
// manifests in memory.
type pushed struct {
	Path, Type string
	Body       []byte
}

// record keeps each manifest that the registry takes.
func record(images http.Handler, folder string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
			images.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		images.ServeHTTP(answer, r)
		if answer.Code == http.StatusCreated {
			err = write(folder, pushed{r.URL.Path, r.Header.Get("Content-Type"), body})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

func write(folder string, manifest pushed) error {
	content, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, url.PathEscape(manifest.Path))
	if err := os.WriteFile(file+".new", content, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// replay pushes again what was pushed before, in the same order: an index comes
// after the manifests that it names.
func replay(images http.Handler, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(age(a), age(b)) })
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		var manifest pushed
		if json.Unmarshal(content, &manifest) != nil {
			continue
		}
		request := httptest.NewRequestWithContext(context.Background(), http.MethodPut, manifest.Path, bytes.NewReader(manifest.Body))
		request.Header.Set("Content-Type", manifest.Type)
		answer := httptest.NewRecorder()
		images.ServeHTTP(answer, request)
		if answer.Code != http.StatusCreated {
			log.Printf("%s is not served any more: %s", manifest.Path, answer.Body)
		}
	}
	return nil
}

func age(entry os.DirEntry) int64 {
	info, err := entry.Info()
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}
