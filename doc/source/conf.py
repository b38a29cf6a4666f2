project = 'nova-ironic-ring'
copyright = 'nova-ironic-ring developers'
extensions = ['cliff.sphinxext', 'openstackdocstheme',
              'oslo_config.sphinxext']
html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_use_storyboard = False
openstackdocs_pdf_link = False
