// The search of the site runs in a worker.  Browsers start none for pages that are read from files,
// so there a hidden frame takes the place of the worker: it loads the same script, and messages
// pass both ways as events.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => (script.onload = resolve));
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      const deliver = () => this.inside.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded.then(deliver);
    }

    terminate() {}
  };
  window.Worker = window.IFrameWorker;
}
