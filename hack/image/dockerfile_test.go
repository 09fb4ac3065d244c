package main

import (
	"context"
	"encoding/json"
	"go/version"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/moby/buildkit/solver/pb"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/mod/modfile"
)

const repository = "../.."

func TestDockerfileConfiguresTheSameImage(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			packed, err := newImage(v1.Platform{OS: "linux", Architecture: arch}, writeBinary(t), testRelease)
			if err != nil {
				t.Fatal(err)
			}
			want, err := packed.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			image := convert(t, arch).Image

			got := v1.Config{
				Entrypoint: image.Config.Entrypoint,
				Cmd:        image.Config.Cmd,
				User:       image.Config.User,
				WorkingDir: image.Config.WorkingDir,
				Labels:     image.Config.Labels,
				Volumes:    image.Config.Volumes,
				StopSignal: image.Config.StopSignal,
				Env:        image.Config.Env,
			}
			for port := range image.Config.ExposedPorts {
				t.Errorf("the Dockerfile exposes port %s", port)
			}
			if diff := cmp.Diff(want.Config, got); diff != "" {
				t.Errorf("the packer (-) and the Dockerfile (+) configure different images:\n%s", diff)
			}
			if image.OS != want.OS || image.Architecture != want.Architecture {
				t.Errorf("the Dockerfile makes an image for %s/%s, want %s/%s", image.OS, image.Architecture, want.OS, want.Architecture)
			}
		})
	}
}

// What BuildKit would do: which base it takes, what it runs there, and what it
// copies out of it.
func TestDockerfileBuildsWithTheScript(t *testing.T) {
	definition, err := convert(t, "arm64").State.Marshal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var bases, commands, copied []string
	for _, bytes := range definition.Def {
		var op pb.Op
		if err := op.UnmarshalVT(bytes); err != nil {
			t.Fatal(err)
		}
		if source := op.GetSource(); source != nil {
			bases = append(bases, source.Identifier)
		}
		if exec := op.GetExec(); exec != nil {
			commands = append(commands, strings.Join(exec.Meta.Args, " "))
			for _, variable := range []string{"TARGETOS=linux", "TARGETARCH=arm64", "VERSION=" + testRelease.version} {
				if !slices.Contains(exec.Meta.Env, variable) {
					t.Errorf("the build runs without %s: %q", variable, exec.Meta.Env)
				}
			}
			if op.Platform.Architecture != "amd64" {
				t.Errorf("the build runs on %s, want the platform that builds", op.Platform.Architecture)
			}
		}
		for _, action := range op.GetFile().GetActions() {
			if c := action.GetCopy(); c != nil {
				copied = append(copied, c.Src+" "+c.Dest)
			}
		}
	}
	slices.Sort(bases)
	slices.Sort(copied)
	if diff := cmp.Diff([]string{"docker-image://docker.io/library/golang:" + goVersion(t), "local://context"}, bases); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if len(commands) != 1 || !strings.Contains(commands[0], `hack/image/build.sh "$TARGETOS" "$TARGETARCH" /out/samplecrd-controller`) {
		t.Errorf("the Dockerfile runs %q, want only hack/image/build.sh", commands)
	}
	if diff := cmp.Diff([]string{"/ /src/", "/out/samplecrd-controller /samplecrd-controller"}, copied); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
}

func TestDockerfileHasNoWarnings(t *testing.T) {
	opt := options("amd64")
	opt.AllStages = true
	opt.Warn = func(rule, _, _, message string, _ []parser.Range) {
		t.Errorf("%s: %s", rule, message)
	}
	if _, err := dockerfile2llb.Dockerfile2LLB(t.Context(), dockerfile(t), opt); err != nil {
		t.Fatal(err)
	}
}

// What .dockerignore lets through is enough to build, and gives the very binary
// that the repository gives: whoever builds it, and in which folder.
func TestContextBuildsTheSameBinary(t *testing.T) {
	folder := t.TempDir()
	copyContext(t, folder)
	for _, arch := range []string{"amd64", "arm64"} {
		want, got := build(t, repository, arch), build(t, folder, arch)
		if want != got {
			t.Errorf("%s: the repository builds %s, the context of an engine %s", arch, want, got)
		}
	}
}

func TestContextLeavesOut(t *testing.T) {
	matcher := ignored(t)
	for _, name := range []string{".git/config", "build/image.tar", program, "clouds.yaml", "main_test.go", "pkg/plan/plan_test.go", "hack/image/main.go"} {
		left, err := matcher.MatchesOrParentMatches(name)
		if err != nil {
			t.Fatal(err)
		}
		if !left {
			t.Errorf("%s would be sent to the engine", name)
		}
	}
}

func build(t *testing.T, folder, arch string) digest.Digest {
	t.Helper()
	out := filepath.Join(t.TempDir(), program)
	build := exec.CommandContext(t.Context(), filepath.Join(folder, "hack/image/build.sh"), "linux", arch, out)
	build.Env = append(os.Environ(), "VERSION=v0.0.0-test")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building in %s: %v\n%s", folder, err, output)
	}
	binary, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return digest.FromBytes(binary)
}

// copyContext copies what an engine would be sent.
func copyContext(t *testing.T, to string) {
	t.Helper()
	matcher := ignored(t)
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(repository, path)
		if err != nil {
			return err
		}
		if name == ".git" || name == "build" { // TestContextLeavesOut holds that they are ignored
			return fs.SkipDir
		}
		if entry.IsDir() {
			return nil
		}
		if left, err := matcher.MatchesOrParentMatches(name); err != nil || left {
			return err
		}
		return copyFile(path, filepath.Join(to, name))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode())
}

func ignored(t *testing.T) *patternmatcher.PatternMatcher {
	t.Helper()
	file, err := os.Open(filepath.Join(repository, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it only reads
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return matcher
}

func dockerfile(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// goVersion is the version of Go in the product's go.mod, without the patch.
func goVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.ParseLax("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(version.Lang("go"+file.Go.Version), "go")
}

// convert has BuildKit make of the Dockerfile what it would carry out, on amd64
// for the architecture given.
func convert(t *testing.T, arch string) *dockerfile2llb.Result {
	t.Helper()
	result, err := dockerfile2llb.Dockerfile2LLB(t.Context(), dockerfile(t), options(arch))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func options(arch string) dockerfile2llb.ConvertOpt {
	return dockerfile2llb.ConvertOpt{
		Config: dockerui.Config{
			BuildArgs:       map[string]string{"VERSION": testRelease.version, "REVISION": testRelease.revision},
			BuildPlatforms:  []ocispec.Platform{{OS: "linux", Architecture: "amd64"}},
			TargetPlatforms: []ocispec.Platform{{OS: "linux", Architecture: arch}},
		},
		TargetPlatform: &ocispec.Platform{OS: "linux", Architecture: arch},
		MetaResolver:   bareImages{},
	}
}

// bareImages answers for every image of a registry that it has a layer and that
// nothing is configured. The last stage starts from none of them.
type bareImages struct{}

func (bareImages) ResolveImageConfig(_ context.Context, ref string, opt sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config, err := json.Marshal(ocispec.Image{
		Platform: *opt.ImageOpt.Platform,
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromString("a layer")}},
	})
	return ref, "", config, err
}
